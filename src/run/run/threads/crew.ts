import { askUnlessStopped, type Call } from '../../../base/core/call.ts'
import type { GatherOptions } from '../../../engine/weigh/gather.ts'
import type { Listen } from '../../watch/events.ts'
import type {
  Elsewhere,
  GroupCall,
  GroupWork,
  Piece,
  Returned,
  ReturnedGroup,
  Work,
} from '../elsewhere.ts'
import { mostTries, suspectAfter } from '../served/tries.ts'
import type { Asked, AskedAttempt, AskedGroup, Named } from './asked.ts'
import { makeHearing } from './hearing.ts'
import { makingOf, type WeightsOrder } from './messages.ts'
import {
  attemptsIn,
  byLoad,
  countMade,
  isBusyAlone,
  loadOf,
  makePlace,
  type Place as PlaceOf,
  spareOf,
  statusOf,
} from './place.ts'
import type { RollThread, ThreadNews } from './thread.ts'

/** What a crew is made of. */
export interface CrewOptions {
  /** Attempts at one time in each thread. */
  readonly widths: readonly number[]
  /** Threads that may be starting at one time; more than there are cores would only hinder each other. @default any number */
  readonly atOnce?: number
  /** Starts the thread of a place. */
  start(place: number, news: ThreadNews): RollThread
  /** Whether threads weigh groups in this way. */
  weighs(how: GatherOptions): boolean
  /** The weights of the run's policy, if it runs inside. */
  packWeights(): Promise<Uint8Array | null>
  readonly tell: (line: string) => void
  /** Whether others decide what is made again and what is spread: then nothing of that is done here. @default false */
  readonly isLent?: boolean
}

/** Milliseconds between two looks at how fast the threads are; it is told at every fourth, or when that changes something. */
const pulse = 250
const looksPerTelling = 4

type Place = PlaceOf<Asked>

/** Threads that make the attempts of a run: the contract of a cluster, without its database. */
export class Crew implements Elsewhere, AsyncDisposable {
  readonly #options: CrewOptions
  readonly #places: readonly Place[]
  readonly #waiting: Asked[] = []
  /** Attempts during which threads died; each is made alone. */
  readonly #suspects: AskedAttempt[] = []
  readonly #listeners = new Set<Listen>()
  readonly #timer: NodeJS.Timeout
  /** Attempts of a group, if groups are made whole. */
  #groupSize = 0
  /** Attempts that all threads made between the last two looks. */
  #lately = 0
  #soon: NodeJS.Immediate | undefined
  #pausing: Promise<unknown> | undefined
  #weights: WeightsOrder | undefined
  #failure: unknown
  readonly #hear = makeHearing(event => {
    for (const listen of this.#listeners) listen(event)
  })
  #looks = 0
  #isClosed = false

  constructor(options: CrewOptions) {
    this.#options = options
    this.#places = options.widths.map((width, index) => makePlace<Asked>(width, index))
    this.#timer = setInterval(() => this.#look(), pulse).unref()
  }

  /** Starts threads before there is work; resolves when the first can make attempts. */
  async ready(): Promise<void> {
    this.#startUpTo(this.#places.length)
    await Promise.any(this.#threads.map(thread => thread.ready)).catch((error: AggregateError) => {
      throw error.errors[0]
    })
  }

  get room(): number {
    return this.#places.reduce((sum, place) => sum + this.#mostOf(place), 0)
  }

  /** Whoever stops listening is told a last time: a short run may end between two looks. */
  watch(listen: Listen): () => void {
    this.#listeners.add(listen)
    return () => {
      if (this.#listeners.delete(listen)) this.#tell(listen)
    }
  }

  make(work: Work, call: Call & { readonly tries?: number } & Named): Promise<Returned> {
    const { signal, making, tries = 0 } = call
    return askUnlessStopped(call, answering =>
      this.#ask({ kind: 'attempt', work, making, signal, tries, left: 1, ...answering }),
    )
  }

  weighs(how: GatherOptions): boolean {
    return this.#options.weighs(how)
  }

  makeGroup(work: GroupWork, call: GroupCall & Named): Promise<ReturnedGroup> {
    this.#groupSize = work.members
    const { onBegin, onPiece, making = work.group } = call
    return askUnlessStopped(call, answering =>
      this.#ask({
        kind: 'group',
        work,
        making,
        left: work.members,
        onBegin,
        onPiece,
        ...answering,
      }),
    )
  }

  /** Lets it wait its turn; gives what takes it back. */
  #ask(asked: Asked): () => void {
    if (this.#failure) asked.reject(this.#failure)
    else {
      this.#waiting.push(asked)
      // Groups are counted when all are here that come together.
      if (asked.kind === 'attempt') this.#dispatch()
      else this.#soon ??= setImmediate(() => this.#dispatch())
      this.#grow()
    }
    return () => {
      remove(this.#waiting, asked)
      if (asked.kind === 'attempt') remove(this.#suspects, asked)
      asked.takeBack?.()
    }
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
    await Promise.all(this.#threads.map(thread => ask(thread).catch(() => undefined)))
  }

  get #threads(): readonly RollThread[] {
    return this.#places.flatMap(({ thread }) => thread ?? [])
  }

  /** Starts threads while there are attempts to make for more of them. */
  #grow(): void {
    if (this.#places.at(-1)?.thread) return
    const given = this.#places.reduce((sum, { load }) => sum + load, this.#suspects.length)
    this.#startUpTo(given + attemptsIn(this.#waiting, this.#places.length))
  }

  /** Starts threads in the first places, as many as may be starting at one time. */
  #startUpTo(count: number): void {
    const { atOnce = Number.POSITIVE_INFINITY } = this.#options
    let starting = this.#threads.length - this.#places.filter(({ isReady }) => isReady).length
    for (const place of this.#places.slice(0, count)) {
      if (place.thread) continue
      if (starting++ >= atOnce) return
      place.since = performance.now()
      this.#start(place)
    }
  }

  #start(place: Place): void {
    const thread = this.#options.start(place.index, {
      onLost: () => this.#replace(place),
      onSignal: this.#hear,
      onHalted: error => this.#fail(error),
    })
    place.thread = thread
    // It makes nothing before it has the weights of the others.
    const entered = this.#weights && thread.resume(this.#weights).catch(() => undefined)
    if (this.#pausing) void thread.pause().catch(() => undefined)
    const ready = entered ? thread.ready.then(() => entered) : thread.ready
    ready.then(
      () => {
        place.isReady = true
        this.#dispatch()
        this.#grow()
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
    clearImmediate(this.#soon)
    this.#soon = undefined
    this.#dispatchSuspect()
    while (this.#waiting.length > 0) {
      const place = this.#freest()
      if (!place) return
      const isPlenty = this.#isPlenty()
      const asked = this.#waiting.shift()!
      if (asked.kind === 'group' && !isPlenty) asked.resolve({ kind: 'spread' })
      else this.#give(place, asked)
    }
  }

  /**
   * Whether all threads have enough to do if each of them makes whole groups. Those that make one in
   * a moment are never idle for long: spread attempts would cost the thread that gathers more than that.
   */
  #isPlenty(): boolean {
    if (this.#options.isLent) return true
    if (this.#lately >= this.#places.length * this.#groupSize) return true
    const idle = this.#places.reduce((sum, { width, load }) => sum + Math.max(0, width - load), 0)
    const enough = Math.min(idle, plentiful * this.#places.length * this.#groupSize)
    return attemptsIn(this.#waiting, enough) >= enough
  }

  /** A thread that makes whole groups has one to go on with. */
  #mostOf({ width, spare }: Place): number {
    return width + Math.max(spare, this.#groupSize)
  }

  /** Whether a thread is sent more: it is filled when half of what it has to go on with is made. */
  #hasRoom(place: Place): boolean {
    const most = this.#mostOf(place)
    if (place.load >= most) place.isFilling = false
    else if (place.load <= most - place.spare / 2) place.isFilling = true
    return place.isFilling
  }

  #freest(): Place | undefined {
    let best: Place | undefined
    for (const place of this.#places) {
      if (!place.isReady || place.isAlone || !this.#hasRoom(place)) continue
      if (!best || loadOf(place) < loadOf(best)) best = place
    }
    return best
  }

  /** One suspect at a time: a place is kept free for it until it is empty. */
  #dispatchSuspect(): void {
    if (this.#suspects.length === 0 || this.#places.some(isBusyAlone)) return
    const kept = this.#places.find(({ isAlone }) => isAlone)
    const place = kept ?? this.#places.filter(({ isReady }) => isReady).sort(byLoad)[0]
    if (!place) return
    place.isAlone = true
    if (place.isReady && place.held.size === 0) this.#give(place, this.#suspects.shift()!)
  }

  #give(place: Place, asked: Asked): void {
    place.held.add(asked)
    place.load += asked.left
    const withdraw =
      asked.kind === 'group' ? this.#giveGroup(place, asked) : this.#giveAttempt(place, asked)
    // One that is gone may have answered already.
    if (!place.held.has(asked)) return
    // Not assigned as it is made: V8 would put it, and with it all that was asked, into the old generation.
    const takeBack = (): void => {
      withdraw()
      this.#leave(place, asked)
    }
    asked.takeBack = takeBack
  }

  #giveAttempt(place: Place, asked: AskedAttempt): () => void {
    const { work, tries, making = makingOf(work.group, work.member, tries) } = asked
    return place.thread!.make(work, making, {
      resolve: served => {
        if (served.kind === 'made') countMade(place, 1, served.sent)
        asked.resolve(served)
        this.#leave(place, asked)
      },
      reject: error => {
        this.#tryAgain(asked, error)
        this.#leave(place, asked)
      },
    })
  }

  #giveGroup(place: Place, asked: AskedGroup): () => void {
    asked.onBegin()
    return place.thread!.makeGroup(asked.work, asked.making, {
      onPiece: piece => {
        this.#takeOff(place, asked, piece)
        void asked.onPiece(piece)
        this.#dispatch()
      },
      resolve: returned => {
        if (returned.kind === 'made') this.#takeOff(place, asked, returned.piece)
        asked.resolve(returned)
        this.#leave(place, asked)
      },
      // Its attempts are tried again one by one, so that the one which kills threads is found.
      reject: error => {
        if (this.#isClosed || this.#options.isLent) asked.reject(error)
        else asked.resolve({ kind: 'broken', tries: 1 })
        this.#leave(place, asked)
      },
    })
  }

  /** Takes the attempts of a piece off what a thread has to do. */
  #takeOff(place: Place, asked: AskedGroup, piece: Piece): void {
    const { count } = piece
    countMade(place, count, piece)
    place.load -= count
    asked.left -= count
  }

  #leave(place: Place, asked: Asked): void {
    if (!place.held.delete(asked)) return
    delete asked.takeBack
    place.load -= asked.left
    if (place.isAlone && place.held.size === 0 && this.#suspects.length === 0) {
      place.isAlone = false
    }
    this.#dispatch()
  }

  #replace(place: Place): void {
    if (this.#isClosed || this.#failure) return
    place.isReady = false
    this.#start(place)
  }

  /** The thread died or threw: try again, up to the limit of tries. */
  #tryAgain(asked: AskedAttempt, error: unknown): void {
    asked.tries++
    const { message } = error as Error
    if (this.#failure) asked.reject(this.#failure)
    else if (asked.signal.aborted || this.#isClosed || this.#options.isLent) asked.reject(error)
    else if (asked.tries >= mostTries) {
      const { group, member } = asked.work
      this.#options.tell(`${group}/${member} is given up: whoever rolled it died`)
      asked.resolve({ kind: 'poisoned', reason: `tried ${asked.tries} times: ${message}` })
    } else if (asked.tries >= suspectAfter) this.#suspects.push(asked)
    else this.#waiting.unshift(asked)
  }

  #look(): void {
    const before = this.room
    this.#lately = 0
    for (const place of this.#places) {
      const lately = place.done - place.seen
      place.spare = spareOf(place.width, lately)
      place.seen = place.done
      this.#lately += lately
    }
    if (++this.#looks % looksPerTelling !== 0 && this.room === before) return
    for (const listen of this.#listeners) this.#tell(listen)
  }

  #tell(listen: Listen): void {
    listen({ kind: 'workers', workers: this.#places.filter(({ thread }) => thread).map(statusOf) })
  }
}

/** So many groups for each thread keep all of them busy, whichever of them are long. */
export const plentiful = 4

function remove<Item>(list: Item[], item: Item): void {
  const at = list.indexOf(item)
  if (at >= 0) list.splice(at, 1)
}
