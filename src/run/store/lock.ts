import { createHash, randomUUID } from 'node:crypto'
import { link, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { StoreError } from '../../base/core/files/store-error.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'

/** The holder of a lock: a process on a machine; `started` distinguishes it from later ones with the same id. */
interface Owner {
  readonly pid: number
  readonly host: string
  /** When the process started, in ticks since boot, if the system reports it. */
  readonly started: string
}

/**
 * Makes sure that one process writes; a lock whose process is gone is taken over.
 *
 * A lock that is left by a dead process is never moved or overwritten: between reading it and doing
 * so it could have become somebody's. Instead whoever takes over makes a file whose name only the
 * text of the dead lock gives, and every lock's text is unique, so of many one succeeds. If that one dies
 * too, its own text gives the next name. Who holds the lock is at the end of that chain.
 */
export async function lockFile(path: string): Promise<AsyncDisposable> {
  const draft = `${path}.${randomUUID()}`
  try {
    await writeFile(draft, JSON.stringify({ ...(await ownerOf(process.pid)), id: randomUUID() }))
    for (;;) {
      const chain = await readChain(path)
      const end = chain.at(-1)
      if (end) await refuseLiving(path, end.text)
      const place = end ? nextPlace(path, end.text) : path
      if (!(await tryLink(draft, place))) continue
      if (!end || (await isStill(path, chain[0]!.text))) return release(path, [...chain, { place }])
      // The lock was released in between, and may belong to somebody else now.
      await rm(place, { force: true })
    }
  } catch (cause) {
    if (cause instanceof LockedError) throw cause
    throw new StoreError(path, { cause })
  } finally {
    await rm(draft, { force: true })
  }
}

/** Whether somebody may hold the lock: a process that lives, or one on another machine. */
export async function mayBeHeld(path: string): Promise<boolean> {
  const end = (await readChain(path)).at(-1)
  if (!end) return false
  const owner = readOwner(end.text)
  return !owner || owner.host !== hostname() || (await isAlive(owner))
}

/** Removes the lock itself first: from then on nobody follows the rest of the chain. */
function release(path: string, chain: readonly { readonly place: string }[]): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      const takeovers = chain.map(({ place }) => place).filter(place => place !== path)
      await removeLeftovers(path, new Set(takeovers))
      // Only once: a moment later the lock may belong to somebody else.
      await rm(path, { force: true })
      for (const place of takeovers) await rm(place, { force: true })
    },
  }
}

/**
 * Removes takeovers of processes that died while releasing a lock. This must happen while the lock is
 * held: later, a takeover outside this chain may belong to the next one.
 */
async function removeLeftovers(path: string, own: ReadonlySet<string>): Promise<void> {
  const prefix = `${basename(path)}.over.`
  for (const entry of await readdir(dirname(path)).catch(() => [])) {
    const place = join(dirname(path), entry)
    if (entry.startsWith(prefix) && !own.has(place)) await rm(place, { force: true })
  }
}

/** Thrown if another process is writing the run: a folder was named that cannot be written now. */
export class LockedError extends SettingError {
  override name = 'LockedError'
}

interface Held {
  readonly place: string
  readonly text: string
}

/** The lock and those who took it over, one after another; the last of them holds it. */
async function readChain(path: string): Promise<readonly Held[]> {
  const chain: Held[] = []
  for (let place = path; ; ) {
    const text = await readFile(place, 'utf8').catch(() => undefined)
    if (text === undefined) return chain
    chain.push({ place, text })
    place = nextPlace(path, text)
  }
}

function nextPlace(path: string, text: string): string {
  return `${path}.over.${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}

async function isStill(path: string, text: string): Promise<boolean> {
  return (await readFile(path, 'utf8').catch(() => undefined)) === text
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

/** Error codes of file systems without hard links. */
const withoutLinks = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

async function refuseLiving(path: string, text: string): Promise<void> {
  const owner = readOwner(text)
  if (!owner) {
    // Without links a lock exists before its text: wait until it has been written.
    await setTimeout(20)
    return
  }
  if (owner.host !== hostname()) {
    throw new LockedError(
      `${dirname(path)} is being written by process ${owner.pid} on ${owner.host}; if that is gone, remove ${path}`,
    )
  }
  if (await isAlive(owner)) {
    throw new LockedError(
      `${dirname(path)} is being written by process ${owner.pid}: wait until it ends, end it with ` +
        `\`kill ${owner.pid}\`, or choose another folder`,
    )
  }
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
  return { pid, host: hostname(), started: (await processAt(pid)).started }
}

/** The third and the 22nd field of Linux's process table, its state and its start; '' elsewhere. */
async function processAt(
  pid: number,
): Promise<{ readonly state: string; readonly started: string }> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0] ?? '', started: fields[19] ?? '' }
}

/** States of processes that have ended, and are listed only until their parent has asked how. */
const ended = ['Z', 'X', 'x']

async function isAlive(owner: Owner): Promise<boolean> {
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  const { state, started } = await processAt(owner.pid)
  if (ended.includes(state)) return false
  return owner.started === '' || started === '' || started === owner.started
}
