import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lockFile } from './lock.ts'

const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-lock-')), 'writer.lock')

const deadPid = (): number => spawnSync(process.execPath, ['-e', '']).pid

describe('a lock', () => {
  it('is held by one at a time and given back', async () => {
    const path = scratch()
    {
      await using _held = await lockFile(path)
      await expect(lockFile(path)).rejects.toThrow(`is being written by process ${process.pid}`)
    }
    expect(readdirSync(dirname(path))).toEqual([])
    await using _again = await lockFile(path)
  })

  it('of a process that is gone is taken over, by one of many', async () => {
    const path = scratch()
    for (const left of [
      JSON.stringify({ pid: deadPid(), host: hostname(), started: '1' }),
      JSON.stringify({ pid: process.pid, host: hostname(), started: 'long before' }),
      '{"pid": 12',
      '',
    ]) {
      writeFileSync(path, left)
      const tries = await Promise.allSettled(Array.from({ length: 8 }, () => lockFile(path)))
      const held = tries.filter(each => each.status === 'fulfilled')
      expect(held).toHaveLength(1)
      await held[0]!.value[Symbol.asyncDispose]()
      expect(existsSync(path)).toBe(false)
    }
  })

  it('of another machine is left alone, with a word on how to remove it', async () => {
    const path = scratch()
    writeFileSync(path, JSON.stringify({ pid: 1, host: 'elsewhere', started: '' }))
    await expect(lockFile(path)).rejects.toThrow(
      `process 1 on elsewhere; if that is gone, remove ${path}`,
    )
  })
})
