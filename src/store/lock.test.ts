import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lockFile } from './lock.ts'

const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'espalier-lock-')), 'writer.lock')

const deadPid = (): number => spawnSync(process.execPath, ['-e', '']).pid

/** Processes that all want one lock; whoever gets it dies with it. Gives what each of them said. */
async function raceFor(path: string, count: number): Promise<readonly string[]> {
  const module = new URL('../../dist/store/lock.js', import.meta.url).href
  const program = `
    import { rmSync, writeFileSync } from 'node:fs'
    const { lockFile } = await import(${JSON.stringify(module)})
    try {
      await lockFile(${JSON.stringify(path)})
      // Fails where another is in here at the same time.
      writeFileSync(${JSON.stringify(`${path}.inside`)}, '', { flag: 'wx' })
      await new Promise(resolve => setTimeout(resolve, 5))
      rmSync(${JSON.stringify(`${path}.inside`)})
      process.stdout.write('held', () => process.kill(process.pid, 'SIGKILL'))
    } catch (error) {
      process.stdout.write(error.name === 'LockedError' ? 'refused' : String(error))
    }`
  const words = ['--input-type=module', '--eval', program]
  const run = async (): Promise<string> => {
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    child.stdout.on('data', part => (said += part))
    await once(child, 'close')
    return said
  }
  return await Promise.all(Array.from({ length: count }, run))
}

describe('a lock', () => {
  it('H5: of a process that is gone is held by one of many processes at a time', async () => {
    const path = scratch()
    writeFileSync(path, JSON.stringify({ pid: deadPid(), host: hostname(), started: '1' }))
    const said = await raceFor(path, 16)
    expect([...new Set(said)].filter(each => each !== 'held' && each !== 'refused')).toEqual([])
    expect(said).toContain('held')
    await using _held = await lockFile(path)
  })

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
