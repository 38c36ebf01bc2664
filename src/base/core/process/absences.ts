import type { Call } from '../call.ts'
import { type Clock, systemClock } from './clock.ts'
import { startTimer } from './timer.ts'

/** A server that does not answer at all: its address takes no connection, or only says that nothing is behind it yet. */
export interface Absence {
  /** Its name or address. */
  readonly server: string
  /** How it was found out, in words. */
  readonly why: string
  /** Milliseconds of the clock. */
  readonly since: number
}

/** Hears of servers that are away, and of those that are back. */
export interface AbsenceListener {
  away?(absence: Absence): void
  back?(absence: Absence, seconds: number): void
}

/** Something that may be asked again when its server is back. */
export interface Awaited<T> extends Call {
  readonly server: string
  /** Whether an error says that the server is away: gives why, in words. */
  readonly isAway: (error: unknown) => string | undefined
  readonly ask: () => Promise<T>
}

/** A request that has not failed for so long was taken: the server is there. */
const takenSeconds = 20
/** Seconds between two looks, at first and at most. */
const [firstLook, longestLook] = [0.5, 10]

interface Waiting extends Absence {
  /** Wakes all who wait. */
  readonly woken: Set<() => void>
  isScouted: boolean
  looks: number
}

/**
 * Servers that are waited for. While one is away, those who need it wait, and one of them at a time finds out
 * whether it is back; limits of seconds stand still, and nothing new is begun.
 */
export class Absences {
  readonly #clock: Clock
  readonly #away = new Map<string, Waiting>()
  readonly #listeners = new Set<AbsenceListener>()
  readonly #idle = new Set<() => void>()
  #stood = 0
  #stoodSince = 0

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  /** Whether any server is away. */
  get some(): boolean {
    return this.#away.size > 0
  }

  has(server: string): boolean {
    return this.#away.has(server)
  }

  /** Whether a run watches: without one that would end it, nobody waits. */
  get isWatched(): boolean {
    return this.#listeners.size > 0
  }

  /** Seconds in which some server was away, so far. */
  seconds(): number {
    const since = this.some ? this.#clock.now() - this.#stoodSince : 0
    return (this.#stood + since) / 1000
  }

  /** Asks; if the server is away, waits until it is back and asks then. Throws what else goes wrong. */
  async ask<T>(awaited: Awaited<T>): Promise<T> {
    const { server, isAway, ask } = awaited
    if (!this.isWatched) return await ask()
    const known = this.#away.get(server)
    if (known) return await this.#outwait(awaited, known.why)
    try {
      return await ask()
    } catch (error) {
      const why = isAway(error)
      if (why === undefined || awaited.signal.aborted) throw error
      return await this.#outwait(awaited, why)
    }
  }

  async #outwait<T>(awaited: Awaited<T>, first: string): Promise<T> {
    const { server, isAway, ask, signal } = awaited
    let why = first
    for (;;) {
      signal.throwIfAborted()
      const absence = this.#leave(server, why)
      try {
        if (await this.#turnOf(absence, { signal })) return await this.#scout(absence, awaited)
        return await ask()
      } catch (error) {
        const again = isAway(error)
        if (signal.aborted || again === undefined) throw error
        why = again
      }
    }
  }

  /** Resolves when no server is away; rejects with the signal's reason. */
  async whenThere(call: Call): Promise<void> {
    while (this.some) await woken(this.#idle, call)
  }

  /** Listens until the returned function is called; what is away already is told at once. */
  on(listener: AbsenceListener): () => void {
    this.#listeners.add(listener)
    for (const absence of this.#away.values()) listener.away?.(absence)
    return () => void this.#listeners.delete(listener)
  }

  #leave(server: string, why: string): Waiting {
    const known = this.#away.get(server)
    if (known) return known
    const since = this.#clock.now()
    if (!this.some) this.#stoodSince = since
    const absence = { server, why, since, woken: new Set<() => void>(), isScouted: false, looks: 0 }
    this.#away.set(server, absence)
    for (const each of this.#listeners) each.away?.(absence)
    return absence
  }

  #comeBack(absence: Waiting): void {
    if (this.#away.get(absence.server) !== absence) return
    this.#away.delete(absence.server)
    const now = this.#clock.now()
    if (!this.some) this.#stood += now - this.#stoodSince
    for (const each of this.#listeners) each.back?.(absence, (now - absence.since) / 1000)
    wake(absence.woken)
    if (!this.some) wake(this.#idle)
  }

  /** Whether the caller is the one who finds out; false when the server is back. */
  async #turnOf(absence: Waiting, call: Call): Promise<boolean> {
    while (this.#away.get(absence.server) === absence) {
      if (!absence.isScouted) {
        absence.isScouted = true
        return true
      }
      await woken(absence.woken, call)
    }
    return false
  }

  /** Asks after a while; a request that is neither answered nor refused for long was taken. */
  async #scout<T>(absence: Waiting, { ask, isAway, signal }: Awaited<T>): Promise<T> {
    const over = new AbortController()
    try {
      const look = Math.min(longestLook, firstLook * 2 ** absence.looks++)
      await this.#clock.sleep(1000 * look, signal)
      const asked = ask()
      this.#clock.sleep(takenSeconds * 1000, over.signal).then(
        () => this.#comeBack(absence),
        () => {},
      )
      const answer = await asked
      this.#comeBack(absence)
      return answer
    } catch (error) {
      if (!signal.aborted && isAway(error) === undefined && isAnswer(error)) this.#comeBack(absence)
      throw error
    } finally {
      over.abort()
      absence.isScouted = false
      wake(absence.woken)
    }
  }
}

/** A connection that broke says nothing about what comes next. */
function isAnswer(error: unknown): boolean {
  return (error as { readonly problem?: unknown }).problem !== 'connection'
}

function wake(sleepers: Set<() => void>): void {
  const all = [...sleepers]
  sleepers.clear()
  for (const each of all) each()
}

function woken(sleepers: Set<() => void>, { signal }: Call): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const rise = (): void => {
      signal.removeEventListener('abort', leave)
      resolve()
    }
    const leave = (): void => {
      sleepers.delete(rise)
      reject(signal.reason)
    }
    sleepers.add(rise)
    signal.addEventListener('abort', leave, { once: true })
  })
}

/** The servers that anything in this process waits for. */
export const absences = new Absences()

/** A timer whose seconds stand still while a server is away. */
export interface PatientTimer {
  clear(): void
}

/** Starts a timer for a limit of seconds: an outage does not use them up. */
export function startPatientTimer(act: () => void, milliseconds: number): PatientTimer {
  let stood = absences.seconds()
  const fire = (): void => {
    const more = 1000 * (absences.seconds() - stood)
    stood += more / 1000
    if (more > 0 || absences.some) timer = startTimer(fire, Math.max(more, 250))
    else act()
  }
  let timer = startTimer(fire, milliseconds)
  return { clear: () => clearTimeout(timer) }
}

/** Codes of connections that were not taken. */
const untaken = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Why a server is away, if an error, or what caused it, says that nothing takes connections there. */
export function untakenReason(error: unknown): string | undefined {
  for (
    let each = error, depth = 0;
    each instanceof Error && depth < 6;
    each = each.cause, depth++
  ) {
    const { code } = each as { readonly code?: unknown }
    if (typeof code === 'string' && untaken.has(code)) return each.message || code
  }
  return undefined
}
