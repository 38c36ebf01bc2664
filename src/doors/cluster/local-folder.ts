import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { LockedError, lockFile } from '../../run/store/lock.ts'
import { readManifest } from '../../run/store/run-folder.ts'

const prefix = 'espalier-cluster-'

/** Where the server of a run keeps its data: beside other temporary files, as its own user must reach it. */
export function folderOf(out: string | undefined): string {
  const name = out === undefined ? randomBytes(8).toString('hex') : digest(resolve(out))
  return join(temporaryFolder(), `${prefix}${name}`)
}

const digest = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Whether the server must run as another user: PostgreSQL refuses to run as root. */
const isRoot = (): boolean => process.getuid?.() === 0

/** A temporary folder that the server's user can enter. */
function temporaryFolder(): string {
  return isRoot() ? '/tmp' : tmpdir()
}

/** Makes a folder that the server's user can enter, and nobody else who need not. */
export async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await chmod(folder, isRoot() ? 0o711 : 0o700)
}

/** The file of a folder that says which run folder it belongs to; `null` if there is none. */
const ownerFile = 'run.json'

/** Makes the folder of a run's server and writes down whose it is. */
export async function makeRunFolder(folder: string, out: string | undefined): Promise<void> {
  await makeFolder(folder)
  const owner = { out: out === undefined ? null : resolve(out) }
  await writeFile(join(folder, ownerFile), `${JSON.stringify(owner)}\n`, { mode: 0o600 })
}

/** The name of a run in its database is kept in its folder. */
export const runIdFile = (out: string): string => join(out, 'cluster.json')

/**
 * Removes the folder of a server that has ended, unless a run can go on with what is in it. A folder
 * that does not say whose it is stays.
 */
export async function removeUnlessNeeded(folder: string): Promise<void> {
  if (!(await isNeeded(folder))) await rm(folder, { recursive: true, force: true })
}

async function isNeeded(folder: string): Promise<boolean> {
  const out = await ownerOf(folder)
  if (out === undefined) return true
  // A run that has not entered its database has nothing there.
  if (out === null || !existsSync(runIdFile(out))) return false
  const manifest = await readManifest(out).catch(() => undefined)
  return manifest !== undefined && manifest.status !== 'finished'
}

async function ownerOf(folder: string): Promise<string | null | undefined> {
  try {
    const { out } = JSON.parse(await readFile(join(folder, ownerFile), 'utf8'))
    return typeof out === 'string' || out === null ? out : undefined
  } catch {
    return undefined
  }
}

/** Seconds that a server which is just ending is waited for. */
const lockSeconds = 15

/** Makes sure that one server uses a folder; one that is ending is waited for. */
export async function lockFolder(folder: string): Promise<AsyncDisposable> {
  const end = performance.now() + lockSeconds * 1000
  for (;;) {
    try {
      return await lockFile(lockOf(folder))
    } catch (error) {
      if (!(error instanceof LockedError) || performance.now() > end) throw error
      await wait(100)
    }
  }
}

const lockOf = (folder: string): string => join(folder, 'server.lock')

/** Minutes in which the server of a folder that was just made may not have locked it yet. */
const freshMinutes = 10

/** Removes what servers that were killed have left behind, if no run can go on with it. */
export async function sweepFolders(among = temporaryFolder(), now = Date.now()): Promise<void> {
  const names = await readdir(among).catch(() => [])
  for (const name of names) {
    // What cannot be removed now is tried again by the next one.
    if (name.startsWith(prefix)) await sweepFolder(join(among, name), now).catch(() => undefined)
  }
}

async function sweepFolder(folder: string, now: number): Promise<void> {
  const { uid, ctimeMs } = await stat(folder)
  const isOurs = process.getuid === undefined || uid === process.getuid()
  if (!isOurs || now - ctimeMs < freshMinutes * 60_000 || (await isNeeded(folder))) return
  await using _lock = await lockFile(lockOf(folder))
  await removeUnlessNeeded(folder)
}
