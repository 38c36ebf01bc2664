import { existsSync, mkdirSync, mkdtempSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  folderOf,
  lockFolder,
  makeRunFolder,
  removeUnlessNeeded,
  runIdFile,
  sweepFolders,
} from './local-folder.ts'

const scratch = (): string => mkdtempSync(join(tmpdir(), 'espalier-folder-'))
const hour = 3_600_000

/** A run folder as it is at some moment of its life. */
function runFolder(status: 'begun' | 'running' | 'finished'): string {
  const out = scratch()
  const manifest = { format: 3, kind: 'roll', config: {}, versions: {}, started: '', status }
  if (status !== 'begun') {
    writeFileSync(join(out, 'run.json'), JSON.stringify(manifest))
    writeFileSync(runIdFile(out), JSON.stringify({ run: 'pears' }))
  }
  return out
}

async function serverFolder(among: string, name: string, out?: string): Promise<string> {
  const folder = join(among, `espalier-cluster-${name}`)
  await makeRunFolder(folder, out)
  return folder
}

it('keeps what a server leaves only where a run can go on with it', async () => {
  const among = scratch()
  const kept = await serverFolder(among, 'kept', runFolder('running'))
  const others = [
    await serverFolder(among, 'finished', runFolder('finished')),
    await serverFolder(among, 'begun', runFolder('begun')),
    await serverFolder(among, 'gone', join(among, 'no-such-run')),
    await serverFolder(among, 'unnamed'),
  ]
  for (const each of [kept, ...others]) await removeUnlessNeeded(each)
  expect([kept, ...others].map(each => existsSync(each))).toEqual([
    true,
    ...others.map(() => false),
  ])
})

it('removes on the next start what killed servers left, but nothing that is used, new or of unknown origin', async () => {
  const among = scratch()
  const left = await serverFolder(among, 'left')
  const used = await serverFolder(among, 'used')
  const needed = await serverFolder(among, 'needed', runFolder('running'))
  const unknown = join(among, 'espalier-cluster-unknown')
  mkdirSync(unknown)
  await using _lock = await lockFolder(used)
  const all = [left, used, needed, unknown]
  await sweepFolders(among)
  expect(all.map(each => existsSync(each))).toEqual([true, true, true, true])
  await sweepFolders(among, Date.now() + hour)
  expect(all.map(each => existsSync(each))).toEqual([false, true, true, true])
})

it('lets nobody list the folder that holds the password', async () => {
  const folder = folderOf(join(scratch(), 'run'))
  await makeRunFolder(folder, 'run')
  expect(statSync(folder).mode & 0o066).toBe(0)
  await removeUnlessNeeded(folder)
  expect(existsSync(folder)).toBe(false)
})
