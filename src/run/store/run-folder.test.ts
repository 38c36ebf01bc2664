import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bundled } from '../../../test/bundled.ts'
import { LockedError } from './lock.ts'
import { newManifest } from './manifest.ts'
import { claimRunFolder, createRun, readManifest } from './run-folder.ts'
import { openRunReader } from './store.ts'

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

  it.runIf(process.platform === 'linux')('below /proc is refused, and at once', async () => {
    await expect(createRun('/proc/nothing/below', newManifest('roll', {}))).rejects.toThrow('/proc')
  })

  it('is looked for in a folder of runs, which are named', async () => {
    const parent = scratch()
    await using _lock = await createRun(join(parent, 'mine'), newManifest('roll', {}))
    await expect(readManifest(parent)).rejects.toThrow(`it holds runs: ${join(parent, 'mine')}`)
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

/** Whether this user may mount file systems in a space of its own. */
const canMount =
  spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'none', tmpdir()]).status === 0

it.runIf(canMount)(
  'on a read-only file system the reason is said, however deep it lies',
  async () => {
    const folder = scratch()
    const module = await bundled(new URL('./run-folder.ts', import.meta.url))
    const disk = scratch()
    const program = `
    import { claimRunFolder, createRun } from ${JSON.stringify(module)}
    const tell = error => console.log(error.message)
    await createRun(${JSON.stringify(join(disk, 'new'))}, {}).catch(tell)
    await createRun(${JSON.stringify(join(disk, 'new', 'run'))}, {}).catch(tell)
    await claimRunFolder(undefined, ${JSON.stringify(join(disk, 'runs'))}).catch(tell)`
    writeFileSync(join(folder, 'program.mjs'), program)
    const line = `mount -t tmpfs -o ro none ${disk} && ${process.execPath} ${join(folder, 'program.mjs')}`
    const { stdout } = spawnSync('unshare', ['-rm', 'sh', '-c', line], { encoding: 'utf8' })
    const refused = 'cannot be written: the file system is read-only; choose another --out (EROFS)'
    expect(stdout.trim().split('\n')).toEqual(
      ['new', 'new/run', 'runs'].map(each => `${join(disk, each)} ${refused}`),
    )
  },
)

it('a folder without a run, and a file, are not opened as an empty run', async () => {
  const folder = scratch()
  const file = join(folder, 'file')
  writeFileSync(file, '')
  await expect(openRunReader(join(folder, 'nope'))).rejects.toThrow(
    'is not a run: there is no such',
  )
  await expect(openRunReader(folder)).rejects.toThrow('is not a run: it has no run.json')
  await expect(openRunReader(file)).rejects.toThrow('is not a run: it is a file')
})
