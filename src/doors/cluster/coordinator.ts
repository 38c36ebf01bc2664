import { randomUUID } from 'node:crypto'
import { type Answering, askUnlessStopped, type Call } from '../../base/core/call.ts'
import { seatGroup, type TreeId, treeId } from '../../base/core/ids.ts'
import type { Elsewhere, Returned, Work } from '../../run/run/elsewhere.ts'
import { seatsOf } from '../../run/run/pipeline.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import type { Listen, WorkerStatus } from '../../run/watch/events.ts'
import { type Batch, makeBatch } from './batch.ts'
import type { Database } from './database.ts'
import { brokenResult, digestOf, packWork, unpackReturned } from './parcel.ts'
import { makePlacing, type Over, overChannel, type Placed, type Placing } from './placing.ts'
import { type Announced, openRunRow, type RunRow } from './run-row.ts'

/** How a run is coordinated. */
export interface CoordinatorOptions extends Announced {
  /** Names the run in the database; the same one goes on with what is there. */
  readonly run: string
  readonly parts: Pick<RollParts, 'policy' | 'environment'>
  readonly tell: (line: string) => void
  /** Milliseconds on a clock that never runs backwards. */
  readonly clock?: () => number
}

/** Milliseconds between checks of the workers, and of finished attempts whose announcement was missed. */
const pulse = 1000
/** Most results in memory at one time: read, and not yet written to the journal. */
const mostInHand = 256
/** Attempts kept on the queue per attempt that can run at once. */
const ahead = 2

/** What is changed on the queue. */
type Change =
  | ({ readonly kind: 'place' } & Placed)
  | { readonly kind: 'withdraw' | 'taken'; readonly id: string }
  | { readonly kind: 'refuse'; readonly id: string; readonly reason: string }

interface Waiting extends Answering<Returned> {
  readonly work: Work
  readonly placed: Placed
}

/** A run in the database: its attempts are made by whoever serves it there. */
export class Coordinator implements Elsewhere {
  readonly #database: Database
  readonly #options: CoordinatorOptions
  readonly #row: RunRow
  readonly #placing: Placing
  /** In order per attempt, so that a withdrawal cannot overtake a later request for the same one. */
  readonly #changes: Batch<Change>
  readonly #waiting = new Map<string, Waiting>()
  readonly #inHand = new Set<string>()
  /** Finished attempts that this coordinator has not asked for (yet). */
  readonly #strangers = new Set<string>()
  readonly #listeners = new Set<Listen>()
  readonly #told = new Set<string>()
  #workers: readonly WorkerStatus[] = []
  #version: number | null = null
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #looked: number | undefined
  #collecting: Promise<void> | undefined
  #isOver = false
  #wakers: (() => void)[] = []

  constructor(database: Database, options: CoordinatorOptions) {
    this.#database = database
    this.#options = options
    this.#row = openRunRow(database, options.run, randomUUID())
    this.#placing = makePlacing(database, options.run)
    this.#changes = makeBatch(changes => this.#pass(changes), {
      most: 256,
      about: ({ id }) => id,
      onError: error => this.#failAll(error),
    })
  }

  /** Announces the run, with its first weights if its policy is embedded. */
  async enter(): Promise<this> {
    await this.#row.enter(this.#options)
    const weights = await this.#options.parts.policy.inside?.pack()
    if (weights) {
      this.#version = 0
      await this.#row.resume(0, weights)
    }
    await this.#database.listen(overChannel(this.#options.run), announced => {
      if (announced === undefined) this.#askAgain()
      this.#wake()
    })
    this.#timer = setInterval(() => this.#lookAround(), pulse)
    this.#lookAround()
    this.#collecting = this.#collectAll().catch(error => this.#failAll(error))
    return this
  }

  get room(): number {
    const taking = this.#workers.filter(({ refusal }) => refusal === null)
    return ahead * taking.reduce((sum, { concurrency }) => sum + concurrency, 0)
  }

  watch(listen: Listen): () => void {
    this.#listeners.add(listen)
    return () => void this.#listeners.delete(listen)
  }

  make(work: Work, call: Call): Promise<Returned> {
    const id: string = treeId(work.group, work.member)
    return askUnlessStopped(call, answering => {
      const placed = { id, work: packWork(work), digest: digestOf(work, this.#version) }
      this.#waiting.set(id, { work, placed, ...answering })
      this.#strangers.delete(id)
      this.#changes.add({ kind: 'place', ...placed })
      return () => {
        if (this.#waiting.delete(id)) this.#changes.add({ kind: 'withdraw', id })
      }
    })
  }

  taken(attempt: TreeId): void {
    this.#changes.add({ kind: 'taken', id: attempt })
  }

  async pause(): Promise<void> {
    const epoch = await this.#row.pause()
    while ((await this.#row.stillSampling(epoch)) > 0) {
      if (this.#isOver) throw new Error('the run has ended')
      await this.#news()
    }
  }

  async resume(version?: number): Promise<void> {
    const isChanged = version !== undefined
    await this.#row.resume(
      version,
      isChanged ? await this.#options.parts.policy.inside?.pack() : undefined,
    )
    this.#version = version ?? this.#version
  }

  /** Leaves the database. Of a finished run nothing stays; of an unfinished one its results stay. */
  async end(isFinished: boolean): Promise<void> {
    this.#isOver = true
    clearInterval(this.#timer)
    this.#wake()
    await this.#looking
    await this.#collecting
    await this.#changes.flushed()
    await (isFinished ? this.#row.remove() : this.#row.stop())
  }

  /** After an outage: a server that crashed may have lost the latest requests. */
  #askAgain(): void {
    for (const { placed } of this.#waiting.values()) this.#changes.add({ kind: 'place', ...placed })
  }

  async #pass(changes: readonly Change[]): Promise<void> {
    const ids = (kind: Change['kind']): readonly string[] =>
      changes.filter(change => change.kind === kind).map(({ id }) => id)
    const placed = changes.filter(change => change.kind === 'place')
    const refused = changes.filter(change => change.kind === 'refuse')
    const [withdrawn, taken] = [ids('withdraw'), ids('taken')]
    await Promise.all([
      placed.length > 0 && this.#placing.place(placed),
      withdrawn.length > 0 && this.#placing.withdraw(withdrawn),
      taken.length > 0 && this.#placing.taken(taken),
      ...refused.map(({ id, reason }) => this.#placing.refuse(id, reason)),
    ])
    const free = [...taken, ...refused.map(({ id }) => id)]
    for (const id of free) this.#inHand.delete(id)
    if (free.length > 0) this.#wake()
  }

  /** Resolves at the next announcement or regular check. */
  #news(): Promise<void> {
    return new Promise(resolve => this.#wakers.push(resolve))
  }

  #wake(): void {
    const woken = this.#wakers
    this.#wakers = []
    for (const wake of woken) wake()
  }

  #failAll(error: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }

  async #collectAll(): Promise<void> {
    while (!this.#isOver) {
      const news = this.#news()
      const room = Math.min(32, mostInHand - this.#inHand.size)
      const known = [...this.#inHand, ...this.#strangers]
      const over = room > 0 ? await this.#placing.over(known, room) : []
      for (const each of over) this.#hand(each)
      if (over.length < room || room <= 0) await news
    }
  }

  #hand(over: Over): void {
    const asked = this.#waiting.get(over.id)
    if (!asked) {
      this.#strangers.add(over.id)
      return
    }
    // This result answers an older request of the same name; the new one will be placed in a moment.
    if (asked.placed.digest !== over.digest) return
    this.#inHand.add(over.id)
    try {
      const returned = returnedOf(over)
      refuseOthers(returned, asked.work, this.#options.parts)
      this.#waiting.delete(over.id)
      asked.resolve(returned)
    } catch (error) {
      // It costs this attempt a try, and nothing else.
      const reason = (error as Error).message
      this.#options.tell(`${over.id} is made again: ${reason}`)
      this.#changes.add({ kind: 'refuse', id: over.id, reason })
    }
  }

  #lookAround(): void {
    this.#looking ??= this.#look()
      .catch(error => this.#failAll(error))
      .finally(() => {
        this.#looking = undefined
        this.#wake()
      })
  }

  /**
   * Seconds for which the database, or this process, has just stood still. Workers may have been stopped
   * with it, so their leases are extended by that.
   */
  async #stall(): Promise<number> {
    const { clock = () => performance.now() } = this.#options
    const began = clock()
    const late = Math.max(0, began - (this.#looked ?? began) - pulse)
    this.#looked = began
    if (!(await this.#row.beat())) throw new Error('another coordinator has taken this run over')
    return (late + clock() - began) / 1000
  }

  async #look(): Promise<void> {
    const stall = await this.#stall()
    const reaped = await this.#placing.reap(this.#database.contact(), stall)
    for (const { id, state } of reaped) {
      if (state === 'failed') this.#options.tell(`${id} is given up: whoever rolled it died`)
    }
    this.#workers = await this.#row.workers()
    for (const { host, process, refusal } of this.#workers) {
      if (refusal !== null)
        this.#tellOnce(`worker ${host}:${process} does not take this run on: ${refusal}`)
    }
    for (const listen of this.#listeners) listen({ kind: 'workers', workers: this.#workers })
  }

  #tellOnce(line: string): void {
    if (this.#told.has(line)) return
    this.#told.add(line)
    this.#options.tell(line)
  }
}

/** Throws if a result is not that of the attempt that was asked for. */
function refuseOthers(
  returned: Returned,
  { group, member }: Work,
  parts: Pick<RollParts, 'environment'>,
): void {
  if (returned.kind !== 'made') return
  const asked = seatsOf(parts).map(seat => treeId(seatGroup(group, seat), member))
  const got = returned.trees.map(({ id }) => id)
  if (got.length === asked.length && asked.every(id => got.includes(id))) return
  throw brokenResult(`it is that of ${got.join(', ') || 'no attempt'}`)
}

/** What became of an attempt that is over. */
function returnedOf({ state, reason, result }: Over): Returned {
  if (state === 'done' && result) return unpackReturned(result)
  return { kind: 'poisoned', reason: reason ?? 'it broke wherever it was tried' }
}
