import { createHash, randomUUID } from 'node:crypto'
import { link, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { OddFileError, readPlain } from '../../base/core/files/plain-file.ts'
import { StoreError } from '../../base/core/files/store-error.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { isAlive, isNear, type Owner, readOwner, thisProcess } from './lock-owner.ts'

/** A lock that is held: disposing of it gives it back. */
export interface HeldLock extends AsyncDisposable {
  /** Throws if somebody took the lock over: whoever held it writes no more. Asks the disk only now and then. */
  check(): Promise<void>
  /** Whether somebody took it over, as far as is known. */
  readonly isLost: boolean
}

/** The time as a lock sees it. */
export interface LockClock {
  /** Milliseconds on a clock that never runs backwards. */
  now(): number
  wait(milliseconds: number): Promise<unknown>
  /** Does something again and again; the returned function ends that. */
  every(milliseconds: number, work: () => void): () => void
}

const systemClock: LockClock = {
  now: () => performance.now(),
  wait,
  every(milliseconds, work) {
    const timer = setInterval(work, milliseconds).unref()
    return () => clearInterval(timer)
  },
}

/** Milliseconds between two beats of a holder. */
const betweenBeats = 5000
/** A holder elsewhere that does not beat for so many milliseconds of the reader's own clock is dead. */
const silence = 30_000

/** Says whether the holder of a lock lives, if somebody else knows; undefined if nobody does. */
export type IsLed = () => Promise<boolean | undefined>

/**
 * Makes sure that one process writes; a lock whose process is gone is taken over.
 *
 * A lock that is left by a dead process is never moved or overwritten: between reading it and doing
 * so it could have become somebody's. Instead whoever takes over makes a file whose name only the
 * identity in the dead lock gives, and every identity is unique, so of many one succeeds. If that one dies
 * too, its own identity gives the next name. Who holds the lock is at the end of that chain.
 *
 * Of a holder whose process cannot be asked for, in another container or on another machine, the beats are
 * watched: it counts them in its lock. No clock is compared with another machine's. Whoever has a better witness
 * names it: another machine may see what is written to a shared disk late.
 */
export async function lockFile(
  path: string,
  clock = systemClock,
  isLed: IsLed = async () => undefined,
): Promise<HeldLock> {
  const draft = `${path}.${randomUUID()}`
  try {
    const identity = identityText({ ...(await thisProcess()), id: randomUUID() })
    await writeFile(draft, lockText(identity, 0), { flag: 'wx' })
    for (;;) {
      const chain = await readChain(path)
      const end = chain.at(-1)
      if (end) await refuseLiving(path, end, { clock, isLed })
      const place = end ? nextPlace(path, end.text) : path
      if (!(await tryLink(draft, place))) continue
      if (!end || (await isStill(path, chain[0]!.text))) {
        return await hold({ path, place, identity, chain }, clock)
      }
      // The lock was released in between, and may belong to somebody else now.
      await rm(place, { force: true })
    }
  } catch (cause) {
    if (cause instanceof LockedError || cause instanceof OddFileError) throw cause
    throw new StoreError(path, { cause })
  } finally {
    await rm(draft, { force: true })
  }
}

/** Beats that were seen of holders elsewhere, and since when, for whoever looks again and again. */
const seen = new Map<string, { readonly text: string; readonly since: number }>()

/** Whether somebody may hold the lock: a process that lives, or one elsewhere that was not seen silent for long. */
export async function mayBeHeld(path: string, clock = systemClock): Promise<boolean> {
  // One that cannot be read may be held.
  const chain = await readChain(path).catch(() => undefined)
  const end = chain?.at(-1)
  if (!end) return chain === undefined
  const owner = readOwner(end.text)
  if (owner && (await isNear(owner))) return await isAlive(owner)
  if (owner?.beat === undefined) return true
  const before = seen.get(end.place)
  if (before?.text === end.text) return clock.now() - before.since < silence
  seen.set(end.place, { text: end.text, since: clock.now() })
  return true
}

/** Thrown if another process is writing the run: a folder was named that cannot be written now. */
export class LockedError extends SettingError {
  override name = 'LockedError'
}

interface Held {
  readonly place: string
  readonly text: string
}

/** What a process that holds a lock knows of it. */
interface Holding {
  readonly path: string
  readonly place: string
  readonly identity: string
  /** The dead who held it before. */
  readonly chain: readonly Held[]
}

/** Beats until the lock is given back or lost. */
async function hold(
  { path, place, identity, chain }: Holding,
  clock: LockClock,
): Promise<HeldLock> {
  const file = await open(place, 'r+')
  let beats = 0
  let looked = clock.now()
  let lost: StoreError | undefined

  async function look(): Promise<void> {
    looked = clock.now()
    const next = await readPlain(nextPlace(path, identity))
    if (next === undefined && (await isStill(place, identity))) return
    lost ??= new StoreError(dirname(path), { cause: new Error(lostTo(next)) })
  }
  async function beat(): Promise<void> {
    await look()
    if (lost) return
    await file.write(lockText(identity, ++beats), 0)
    // Readers on other machines see what is on the disk.
    await file.datasync()
  }
  let beating: Promise<void> = Promise.resolve()
  const stop = clock.every(betweenBeats, () => {
    // A disk that refuses a beat may take the next one.
    beating = beating.then(beat).catch(() => {})
  })
  return {
    get isLost() {
      return lost !== undefined
    },
    async check() {
      // A process that was stopped for a while looks before it writes.
      if (!lost && clock.now() - looked > 2 * betweenBeats) await look()
      if (lost) throw lost
    },
    async [Symbol.asyncDispose]() {
      stop()
      await beating
      await look().catch(() => {})
      await file.close()
      if (!lost) await release(path, [...chain.map(each => each.place), place])
    },
  }
}

function lostTo(text: string | undefined): string {
  const owner = text === undefined ? undefined : readOwner(text)
  const by = owner ? `process ${owner.pid} on ${owner.host}` : 'somebody'
  return `${by} took it over, so that this process writes no more`
}

/** Removes the lock itself first: from then on nobody follows the rest of the chain. */
async function release(path: string, chain: readonly string[]): Promise<void> {
  const takeovers = chain.filter(place => place !== path)
  await removeLeftovers(path, new Set(takeovers))
  // Only once: a moment later the lock may belong to somebody else.
  await rm(path, { force: true })
  for (const place of takeovers) await rm(place, { force: true })
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

/** The lock and those who took it over, one after another; the last of them holds it. */
async function readChain(path: string): Promise<readonly Held[]> {
  const chain: Held[] = []
  for (let place = path; ; ) {
    const text = await readPlain(place)
    if (text === undefined) return chain
    chain.push({ place, text })
    place = nextPlace(path, text)
  }
}

/** All but the beats. */
function identityOf(text: string): string {
  return text.split(',"beat":')[0]!
}

function identityText(identity: object): string {
  return JSON.stringify(identity).slice(0, -1)
}

/** Always as long, so that it is written over itself. */
function lockText(identity: string, beats: number): string {
  return `${identity},"beat":${String(beats).padEnd(12)}}`
}

function nextPlace(path: string, text: string): string {
  const digest = createHash('sha256').update(identityOf(text)).digest('hex')
  return `${path}.over.${digest.slice(0, 32)}`
}

async function isStill(path: string, text: string): Promise<boolean> {
  const now = await readPlain(path)
  return now !== undefined && identityOf(now) === identityOf(text)
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

async function refuseLiving(
  path: string,
  { place, text }: Held,
  { clock, isLed }: { readonly clock: LockClock; readonly isLed: IsLed },
): Promise<void> {
  const owner = readOwner(text)
  if (!owner) {
    // Without links a lock exists before its text: wait until it has been written.
    await clock.wait(20)
    return
  }
  if (await isNear(owner)) {
    if (await isAlive(owner)) throw lockedBy(path, owner, 'near')
    return
  }
  const lives = (await isLed()) ?? (owner.beat === undefined || (await beats(place, text, clock)))
  if (lives) throw lockedBy(path, owner, 'away')
}

/** Whether a holder that is not near beats, or gives its lock back, before its silence is over. */
async function beats(place: string, text: string, clock: LockClock): Promise<boolean> {
  const begun = clock.now()
  while (clock.now() - begun < silence) {
    await clock.wait(betweenBeats / 5)
    const now = await readPlain(place)
    if (now === text) continue
    return now !== undefined && identityOf(now) === identityOf(text)
  }
  return false
}

function lockedBy(path: string, { pid, host, beat }: Owner, where: 'near' | 'away'): LockedError {
  const is = `${dirname(path)} is being written by process ${pid}`
  if (where === 'near') {
    const end = `end it with \`kill ${pid}\``
    return new LockedError(`${is}: wait until it ends, ${end}, or choose another folder`)
  }
  const end =
    beat === undefined
      ? `if that is gone, remove ${path}`
      : 'it beats: wait until it ends, end it there, or choose another folder'
  return new LockedError(`${is} on ${host}; ${end}`)
}
