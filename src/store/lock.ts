import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { StoreError } from './store-error.ts'

/** Who holds a lock: a process of a machine, told apart from later ones with the same number. */
interface Owner {
  readonly pid: number
  readonly host: string
  /** When the process started, in ticks since boot, where the system tells. */
  readonly started: string
}

/** Makes sure that one process writes; a lock whose process is gone is taken over. */
export async function lockFile(path: string): Promise<AsyncDisposable> {
  const own = await ownerOf(process.pid)
  const draft = `${path}.${process.pid}`
  try {
    await writeFile(draft, JSON.stringify(own))
    while (!(await tryLink(draft, path))) await takeOver(path)
  } catch (cause) {
    if (cause instanceof LockedError) throw cause
    throw new StoreError(path, { cause })
  } finally {
    await rm(draft, { force: true })
  }
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}

/** A run that somebody else is writing. */
export class LockedError extends Error {
  override name = 'LockedError'
}

/** A link appears whole or not at all, so that nobody reads half an owner. */
async function tryLink(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path).catch(async (error: NodeJS.ErrnoException) => {
      if (!withoutLinks.has(error.code ?? '')) throw error
      await writeFile(path, await readFile(draft), { flag: 'wx' })
    })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** What file systems without hard links answer. */
const withoutLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function takeOver(path: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return
  const owner = readOwner(text)
  if (owner && owner.host !== hostname()) {
    throw new LockedError(
      `${dirname(path)} is being written by process ${owner.pid} on ${owner.host}; if that is gone, remove ${path}`,
    )
  }
  if (owner && (await isAlive(owner))) {
    throw new LockedError(`${dirname(path)} is being written by process ${owner.pid}`)
  }
  const aside = `${path}.gone.${process.pid}`
  await rename(path, aside).catch(() => {})
  const moved = await readFile(aside, 'utf8').catch(() => undefined)
  // Somebody else took over in between: the lock that was moved aside is theirs.
  if (moved !== undefined && moved !== text) await link(aside, path).catch(() => {})
  await rm(aside, { force: true })
}

function readOwner(text: string): Owner | undefined {
  try {
    const owner = JSON.parse(text) as Partial<Owner>
    return typeof owner.pid === 'number' && typeof owner.host === 'string'
      ? { pid: owner.pid, host: owner.host, started: String(owner.started ?? '') }
      : undefined
  } catch {
    return undefined
  }
}

async function ownerOf(pid: number): Promise<Owner> {
  return { pid, host: hostname(), started: await startOf(pid) }
}

/** The 22nd field of Linux's process table; '' elsewhere. */
async function startOf(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

async function isAlive(owner: Owner): Promise<boolean> {
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  const started = await startOf(owner.pid)
  return owner.started === '' || started === '' || started === owner.started
}
