import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LockedError } from './lock.ts'
import { newManifest } from './manifest.ts'
import { claimRunFolder, createRun, readManifest } from './run-folder.ts'

const scratch = (): string => mkdtempSync(join(tmpdir(), 'espalier-folder-'))

describe('H5: a run folder', () => {
  it('without a name is chosen by one, however many choose at once', async () => {
    const parent = join(scratch(), 'runs')
    const claims = await Promise.all(
      Array.from({ length: 20 }, () => claimRunFolder(undefined, parent)),
    )
    expect(new Set(claims.map(({ out }) => out)).size).toBe(20)
    for (const claim of claims) await claim[Symbol.asyncDispose]()
    expect(readdirSync(parent)).toEqual([])
  })

  it('that something was put into stays', async () => {
    const parent = join(scratch(), 'runs')
    {
      await using claimed = await claimRunFolder(undefined, parent)
      await using _lock = await createRun(claimed.out, newManifest('roll', {}))
    }
    expect(readdirSync(parent)).toEqual(['0001'])
  })

  it('is begun by one of many; the others are refused and change nothing of it', async () => {
    const out = scratch()
    const begin = (index: number) => createRun(out, newManifest('roll', { index }))
    const tries = await Promise.allSettled(Array.from({ length: 8 }, (_, index) => begin(index)))
    const begun = tries.flatMap((each, index) => (each.status === 'fulfilled' ? [index] : []))
    expect(begun).toHaveLength(1)
    expect((await readManifest(out)).config).toEqual({ index: begun[0] })
    for (const each of tries) {
      if (each.status === 'rejected') expect(each.reason).toBeInstanceOf(LockedError)
    }
  })
})
