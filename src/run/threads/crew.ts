import { hostname } from 'node:os'
import { type Answering, askUnlessStopped, type Call } from '../../core/call.ts'
import type { Listen, WorkerStatus } from '../../watch/events.ts'
import type { Elsewhere, Returned, Work } from '../elsewhere.ts'
import { sampledIn } from '../served/served-run.ts'
import { mostTries, suspectAfter } from '../served/tries.ts'
import { makingOf, type WeightsOrder } from './messages.ts'
import type { RollThread } from './thread.ts'

/** What a crew is made of. */
export interface CrewOptions {
  /** Attempts at one time in each thread. */
  readonly widths: readonly number[]
  /** Starts the thread of a place; `onLost` is called when it dies. */
  start(place: number, onLost: () => void): RollThread
  /** The weights of the run's policy, where it runs inside. */
  packWeights(): Promise<Uint8Array | null>
  readonly tell: (line: string) => void
}

/** Milliseconds between two looks at how fast the threads are; it is told at every fourth, or when that changes something. */
const pulse = 250
const looksPerTelling = 4

/** An attempt that is waited for. */
interface Asked extends Answering<Returned> {
  readonly work: Work
  readonly signal: AbortSignal
  tries: number
  /** Takes it back from the thread that makes it. */
  takeBack?: () => void
}

/** A thread's place: when the thread dies, another one takes it. */
interface Place {
  readonly index: number
  readonly width: number
  readonly since: number
  readonly held: Set<Asked>
  thread: RollThread
  isReady: boolean
  /** Whether it makes one attempt alone, or is about to. */
  isAlone: boolean
  done: number
  sampled: number
  /** Attempts that it is sent to go on with, besides those that it makes. */
  spare: number
  /** What it had done when it was last looked at. */
  seen: number
}

/** Threads that make the attempts of a run: the contract of a cluster, without its database. */
export class Crew implements Elsewhere, AsyncDisposable {
  readonly #options: CrewOptions
  readonly #places: readonly Place[]
  readonly #waiting: Asked[] = []
  /** Attempts during which threads died; each is made alone. */
  readonly #suspects: Asked[] = []
  readonly #listeners = new Set<Listen>()
  readonly #timer: NodeJS.Timeout
  #pausing: Promise<unknown> | undefined
  #weights: WeightsOrder | undefined
  #failure: unknown
  #looks = 0
  #isClosed = false

  constructor(options: CrewOptions) {
    this.#options = options
    this.#places = options.widths.map((width, index) => ({
      index,
      width,
      since: performance.now(),
      held: new Set(),
      thread: options.start(index, () => this.#replace(index)),
      isReady: false,
      isAlone: false,
      done: 0,
      sampled: 0,
      spare: spareOf(width, 0),
      seen: 0,
    }))
    for (const place of this.#places) this.#enter(place)
    this.#timer = setInterval(() => this.#look(), pulse).unref()
  }

  /** Resolves when the first thread can make attempts. */
  async ready(): Promise<void> {
    await Promise.any(this.#places.map(({ thread }) => thread.ready)).catch(
      (error: AggregateError) => {
        throw error.errors[0]
      },
    )
  }

  get room(): number {
    return this.#places.reduce((sum, place) => sum + mostOf(place), 0)
  }

  watch(listen: Listen): () => void {
    this.#listeners.add(listen)
    return () => void this.#listeners.delete(listen)
  }

  make(work: Work, call: Call): Promise<Returned> {
    return askUnlessStopped(call, answering => {
      const asked: Asked = { work, signal: call.signal, tries: 0, ...answering }
      if (this.#failure) asked.reject(this.#failure)
      else {
        this.#waiting.push(asked)
        this.#dispatch()
      }
      return () => {
        remove(this.#waiting, asked)
        remove(this.#suspects, asked)
        asked.takeBack?.()
      }
    })
  }

  /** Nothing to forget: results are not kept here. */
  taken(): void {}

  async pause(): Promise<void> {
    this.#pausing ??= this.#each(thread => thread.pause())
    await this.#pausing
  }

  async resume(version?: number): Promise<void> {
    if (version !== undefined) {
      this.#weights = { version, weights: await this.#options.packWeights() }
    }
    this.#pausing = undefined
    await this.#each(thread => thread.resume(this.#weights ?? { version: null, weights: null }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#each(thread => thread.close())
  }

  /** Asks all threads; one that dies meanwhile counts as answered, and its replacement gets the same state. */
  async #each(ask: (thread: RollThread) => Promise<void>): Promise<void> {
    await Promise.all(this.#places.map(({ thread }) => ask(thread).catch(() => undefined)))
  }

  #enter(place: Place): void {
    const { thread } = place
    if (this.#weights) void thread.resume(this.#weights).catch(() => undefined)
    if (this.#pausing) void thread.pause().catch(() => undefined)
    thread.ready.then(
      () => {
        place.isReady = true
        this.#dispatch()
      },
      error => this.#fail(error),
    )
  }

  /** Fails the run: a thread could not open it, so attempts would differ from those made here. */
  #fail(error: unknown): void {
    if (this.#isClosed) return
    this.#failure ??= error
    for (const asked of [...this.#waiting.splice(0), ...this.#suspects.splice(0)]) {
      asked.reject(error)
    }
  }

  /** Sends waiting attempts to the least busy threads. */
  #dispatch(): void {
    this.#dispatchSuspect()
    while (this.#waiting.length > 0) {
      const place = this.#freest()
      if (!place) return
      this.#give(place, this.#waiting.shift()!)
    }
  }

  #freest(): Place | undefined {
    let best: Place | undefined
    for (const place of this.#places) {
      if (!place.isReady || place.isAlone || place.held.size >= mostOf(place)) continue
      if (!best || loadOf(place) < loadOf(best)) best = place
    }
    return best
  }

  /** One suspect at a time: a place is kept free for it until it is empty. */
  #dispatchSuspect(): void {
    if (this.#suspects.length === 0 || this.#places.some(isBusyAlone)) return
    const kept = this.#places.find(({ isAlone }) => isAlone)
    const place = kept ?? this.#places.filter(({ isReady }) => isReady).sort(byHeld)[0]
    if (!place) return
    place.isAlone = true
    if (place.isReady && place.held.size === 0) this.#give(place, this.#suspects.shift()!)
  }

  #give(place: Place, asked: Asked): void {
    const { work, tries } = asked
    place.held.add(asked)
    const over = (): void => {
      delete asked.takeBack
      this.#leave(place, asked)
    }
    const withdraw = place.thread.make(work, makingOf(work.group, work.member, tries), {
      resolve: served => {
        place.done++
        place.sampled += sampledIn(served)
        asked.resolve(served)
        over()
      },
      reject: error => {
        this.#tryAgain(asked, error)
        over()
      },
    })
    // One that is gone may have answered already.
    if (!place.held.has(asked)) return
    asked.takeBack = () => {
      withdraw()
      over()
    }
  }

  #leave(place: Place, asked: Asked): void {
    place.held.delete(asked)
    if (place.isAlone && place.held.size === 0 && this.#suspects.length === 0) {
      place.isAlone = false
    }
    this.#dispatch()
  }

  #replace(index: number): void {
    if (this.#isClosed || this.#failure) return
    const place = this.#places[index]!
    place.isReady = false
    place.thread = this.#options.start(index, () => this.#replace(index))
    this.#enter(place)
  }

  /** The thread died or threw: try again, up to the limit of tries. */
  #tryAgain(asked: Asked, error: unknown): void {
    asked.tries++
    const { message } = error as Error
    if (asked.signal.aborted || this.#isClosed) asked.reject(error)
    else if (asked.tries >= mostTries) {
      const { group, member } = asked.work
      this.#options.tell(`${group}/${member} is given up: whoever rolled it died`)
      asked.resolve({ kind: 'poisoned', reason: `tried ${asked.tries} times: ${message}` })
    } else if (asked.tries >= suspectAfter) this.#suspects.push(asked)
    else this.#waiting.unshift(asked)
  }

  #look(): void {
    const before = this.room
    for (const place of this.#places) {
      place.spare = spareOf(place.width, place.done - place.seen)
      place.seen = place.done
    }
    if (++this.#looks % looksPerTelling === 0 || this.room !== before) this.#tellAll()
  }

  #tellAll(): void {
    const workers = this.#places.map(statusOf)
    for (const listen of this.#listeners) listen({ kind: 'workers', workers })
  }
}

/** A thread is sent this share of what it made between two looks: for so long it need not hear from here. */
const sharedAhead = 1 / 25
const mostSpare = 32

/**
 * Attempts that a thread is sent besides those that it makes, so that it goes on at once when one ends: a
 * few, and more where it makes thousands in a second. A power of two, so that it seldom changes.
 */
function spareOf(width: number, done: number): number {
  const ahead = 2 ** Math.ceil(Math.log2(Math.max(1, done * sharedAhead)))
  return Math.max(1, Math.ceil(width / 4), Math.min(mostSpare, ahead))
}

const mostOf = ({ width, spare }: Place): number => width + spare
const loadOf = ({ held, width }: Place): number => held.size / width
const byHeld = (a: Place, b: Place): number => a.held.size - b.held.size
const isBusyAlone = ({ isAlone, held, isReady }: Place): boolean =>
  isAlone && (held.size > 0 || !isReady)

function remove<Item>(list: Item[], item: Item): void {
  const at = list.indexOf(item)
  if (at >= 0) list.splice(at, 1)
}

function statusOf(place: Place): WorkerStatus {
  const { index, width, held, done, sampled, since } = place
  return {
    id: `thread-${index + 1}`,
    host: hostname(),
    process: process.pid,
    thread: index + 1,
    concurrency: width,
    running: Math.min(width, held.size),
    done,
    refused: 0,
    sampled,
    leaving: false,
    seconds: (performance.now() - since) / 1000,
    silent: 0,
    refusal: null,
  }
}
