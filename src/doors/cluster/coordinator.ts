import { randomUUID } from 'node:crypto'
import { askUnlessStopped, type Call } from '../../base/core/call.ts'
import { type GroupId, type TreeId, treeId } from '../../base/core/ids.ts'
import type {
  Elsewhere,
  GroupCall,
  GroupWork,
  Returned,
  ReturnedGroup,
  Work,
} from '../../run/run/elsewhere.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { plentiful } from '../../run/run/threads/crew.ts'
import { type RunStorage, removeTurns } from '../../run/store/segments/storage.ts'
import type { Listen, WorkerStatus } from '../../run/watch/events.ts'
import { type Asked, type AskedGroup, answer, leftOf, partOf } from './asked.ts'
import { type Batch, makeBatch } from './batch.ts'
import type { Database } from './database.ts'
import { EarlierGroups } from './earlier-groups.ts'
import { makeImageTable } from './images/image-table.ts'
import { ImageTaker } from './images/take-images.ts'
import { digestOf, packWork } from './parcel.ts'
import { makePlacing, type Over, overChannel, type Placed, type Placing } from './placing.ts'
import { type Announced, openRunRow, type RunRow } from './run-row.ts'

/** How a run is coordinated. */
export interface CoordinatorOptions extends Announced {
  /** Names the run in the database; the same one goes on with what is there. */
  readonly run: string
  readonly parts: Pick<RollParts, 'policy' | 'environment' | 'images'>
  /** Where workers put large trees. */
  readonly storage?: RunStorage | undefined
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
  | { readonly kind: 'withdraw' | 'taken' | 'taken-part'; readonly id: string }
  | { readonly kind: 'refuse'; readonly id: string; readonly reason: string }

/** A run in the database: its attempts are made by whoever serves it there. */
export class Coordinator implements Elsewhere {
  readonly #database: Database
  readonly #options: CoordinatorOptions
  readonly #row: RunRow
  readonly #placing: Placing
  /** None for a run that keeps no images. */
  readonly #images: ImageTaker | undefined
  /** In order per attempt, so that a withdrawal cannot overtake a later request for the same one. */
  readonly #changes: Batch<Change>
  readonly #waiting = new Map<string, Asked>()
  /** Groups that came together, before it is decided whether each is made whole. */
  readonly #gathered = new Set<AskedGroup>()
  #soon: NodeJS.Immediate | undefined
  readonly #inHand = { ids: new Set<string>(), parts: new Set<string>() }
  /** What is over and this coordinator has not asked for (yet); parts with their group. */
  readonly #strangers = { ids: new Set<string>(), parts: new Map<string, string>() }
  #earlier: EarlierGroups | undefined
  /** Attempts that are asked for, those that came since the last look, and how many came between the last two. */
  readonly #count = { asked: 0, came: 0, lately: 0 }
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
    const { images } = options.parts
    const table = makeImageTable(database, options.run)
    if (images) this.#images = new ImageTaker({ ...options, table, store: images.store })
    this.#changes = makeBatch(changes => this.#pass(changes), {
      most: 256,
      about: ({ id }) => id,
      onError: error => this.#failAll(error),
    })
  }

  /** Announces the run, with its first weights if its policy is embedded. */
  async enter(): Promise<this> {
    await this.#row.enter(this.#options)
    this.#earlier = new EarlierGroups(
      this.#placing,
      await this.#placing.groups(),
      this.#options.storage,
    )
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
    return ahead * this.#places
  }

  get #taking(): readonly WorkerStatus[] {
    return this.#workers.filter(({ refusal }) => refusal === null)
  }

  /** Attempts that the workers can make at one time. */
  get #places(): number {
    return this.#taking.reduce((sum, { concurrency }) => sum + concurrency, 0)
  }

  watch(listen: Listen): () => void {
    this.#listeners.add(listen)
    return () => void this.#listeners.delete(listen)
  }

  async make(work: Work, call: Call & { readonly tries?: number }): Promise<Returned> {
    const id = treeId(work.group, work.member)
    const digest = digestOf(work, this.#version)
    if (this.#earlier?.has(work.group)) {
      const found = await this.#earlier.find(work.group, id, digest)
      if (found && (await this.#haveImages())) return found
    }
    return await askUnlessStopped(call, answering => {
      const { tries = 0 } = call
      const placed = { id, work: packWork(work), digest, tries }
      return this.#place({ kind: 'attempt', work, placed, ...answering })
    })
  }

  makeGroup(work: GroupWork, call: GroupCall): Promise<ReturnedGroup> {
    const { group: id, members } = work
    const { onBegin, onPiece } = call
    return askUnlessStopped(call, answering => {
      const placed = { id, work: packWork(work), digest: digestOf(work, this.#version), members }
      const asked = { work, placed, left: members, onBegin, onPiece, ...answering }
      const group: AskedGroup = { kind: 'group', ...asked }
      this.#gathered.add(group)
      this.#soon ??= setImmediate(() => this.#placeGathered())
      return () => {
        if (!this.#gathered.delete(group)) this.#withdraw(group)
      }
    })
  }

  taken(made: TreeId | GroupId): void {
    this.#changes.add({ kind: 'taken', id: made })
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
    clearImmediate(this.#soon)
    this.#wake()
    await this.#looking
    await this.#collecting
    await this.#changes.flushed()
    if (!isFinished) return await this.#row.stop()
    const { storage } = this.#options
    if (storage) await removeTurns(storage, await this.#row.turnSegments())
    await this.#row.remove()
  }

  #place(asked: Asked): () => void {
    const { id } = asked.placed
    this.#waiting.set(id, asked)
    this.#count.asked += leftOf(asked)
    this.#strangers.ids.delete(id)
    if (asked.kind === 'group') {
      const { parts } = this.#strangers
      for (const [part, of] of parts) if (of === id) parts.delete(part)
    }
    this.#changes.add({ kind: 'place', ...asked.placed })
    return () => this.#withdraw(asked)
  }

  /** Groups are counted when all are here that come together. */
  #placeGathered(): void {
    this.#soon = undefined
    const groups = [...this.#gathered]
    this.#gathered.clear()
    const coming = groups.reduce((sum, { left }) => sum + left, this.#count.asked)
    for (const asked of groups) {
      if (this.#isPlenty(coming, asked.left)) {
        asked.onBegin()
        this.#place(asked)
      } else asked.resolve({ kind: 'spread' })
    }
  }

  /** Whether every place has something to do if groups are made whole; without workers nobody knows. */
  #isPlenty(coming: number, members: number): boolean {
    const taking = this.#taking
    const threads = taking.reduce((sum, worker) => sum + (worker.threads ?? 1), 0)
    if (threads === 0 || this.#count.lately >= threads * members) return true
    const narrowest = Math.min(...taking.map(({ concurrency }) => concurrency))
    return members <= narrowest && coming >= Math.min(this.#places, plentiful * threads * members)
  }

  #withdraw(asked: Asked): void {
    const { id } = asked.placed
    if (this.#waiting.get(id) !== asked) return
    this.#settle(asked)
    this.#changes.add({ kind: 'withdraw', id })
  }

  /** Waits for it no longer. */
  #settle(asked: Asked): void {
    this.#waiting.delete(asked.placed.id)
    this.#countCome(leftOf(asked))
  }

  #countCome(attempts: number): void {
    this.#count.asked -= attempts
    this.#count.came += attempts
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
    const [withdrawn, taken, parts] = [ids('withdraw'), ids('taken'), ids('taken-part')]
    await Promise.all([
      placed.length > 0 && this.#placing.place(placed),
      withdrawn.length > 0 && this.#placing.withdraw(withdrawn),
      taken.length > 0 && this.#placing.taken(taken),
      parts.length > 0 && this.#placing.takenParts(parts),
      ...refused.map(({ id, reason }) => this.#placing.refuse(id, reason)),
    ])
    const free = [...taken, ...refused.map(({ id }) => id)]
    for (const id of free) this.#inHand.ids.delete(id)
    for (const part of parts) this.#inHand.parts.delete(part)
    if (free.length + parts.length > 0) this.#wake()
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
    for (const { reject } of [...this.#waiting.values(), ...this.#gathered]) reject(error)
    this.#waiting.clear()
    this.#gathered.clear()
  }

  async #collectAll(): Promise<void> {
    while (!this.#isOver) {
      const news = this.#news()
      const { ids, parts } = this.#inHand
      const room = Math.min(32, mostInHand - ids.size - parts.size)
      const known = {
        ids: [...ids, ...this.#strangers.ids],
        parts: [...parts, ...this.#strangers.parts.keys()],
      }
      const over = room > 0 ? await this.#placing.over(known, room) : []
      const isWhole = !over.some(({ imagesWait }) => imagesWait) || (await this.#haveImages())
      if (isWhole) for (const each of over) this.#hand(each)
      if (!isWhole || over.length < room || room <= 0) await news
    }
  }

  /** Whether all images are here that were sent until now. */
  async #haveImages(): Promise<boolean> {
    return (await this.#images?.take()) ?? true
  }

  #hand(over: Over): void {
    const { id, part } = over
    const asked = this.#waiting.get(id)
    if (!asked) {
      if (part === null) this.#strangers.ids.add(id)
      else this.#strangers.parts.set(part, id)
      return
    }
    // This result answers an older request of the same name; the new one will be placed in a moment.
    if (asked.placed.digest !== over.digest) return
    try {
      if (asked.kind === 'group' && part !== null) this.#handPart(asked, part, over)
      else {
        this.#inHand.ids.add(id)
        answer(asked, over, this.#options)
        this.#settle(asked)
      }
    } catch (error) {
      if (part !== null && this.#inHand.parts.delete(part)) this.#strangers.parts.set(part, id)
      // It costs this attempt a try, and nothing else.
      const reason = (error as Error).message
      this.#options.tell(`${id} is made again: ${reason}`)
      this.#changes.add({ kind: 'refuse', id, reason })
    }
  }

  #handPart(asked: AskedGroup, part: string, over: Over): void {
    this.#inHand.parts.add(part)
    const piece = partOf(asked, over, this.#options)
    asked.left -= piece.count
    this.#countCome(piece.count)
    asked.onPiece(piece).then(
      () => this.#changes.add({ kind: 'taken-part', id: part }),
      () => undefined,
    )
  }

  #lookAround(): void {
    // Workers wait if the database is full of images.
    if (this.#images?.isBusy === false) this.#images.take().catch(error => this.#failAll(error))
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
    this.#count.lately = this.#count.came
    this.#count.came = 0
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
