import { setTimeout as wait } from 'node:timers/promises'
import { describeCause } from '../../base/core/failure.ts'
import { withoutSecrets } from '../../base/core/process/secrets.ts'
import { startTimer } from '../../base/core/process/timer.ts'
import type { GroupWork, Piece, Returned, ReturnedGroup, Work } from '../../run/run/elsewhere.ts'
import type { Crew } from '../../run/run/threads/crew.ts'
import type { SegmentWriter } from '../../run/store/segments/storage.ts'
import type { Leased, Leasing } from './leasing.ts'
import { packPiece, packSpent, unpackWork } from './parcel.ts'
import type { Turns } from './turns.ts'

/** What makes attempts and groups of a run, and where it puts large trees and images. */
export interface Makers extends Pick<Crew, 'make' | 'makeGroup'> {
  readonly segment?: SegmentWriter | undefined
  /** Resolves when the coordinator can have all images that were kept until now. */
  readonly sendImages: () => Promise<void>
  /** Where turns of unfinished attempts lie, if they are kept. */
  readonly turns?: Turns | undefined
}

interface Held {
  readonly leased: Leased
  readonly stop: AbortController
  /** Under which name it was leased: a worker that was given up takes a new name. */
  readonly leasing: Leasing
  /** Attempts that are not made yet. */
  left: number
  readonly begun: Work['begun'] | undefined
  done?: Promise<void>
}

/** Seconds that attempts get to end after they were stopped. */
const lastSeconds = 1

/** The attempts that a worker is making. */
export class LeasedAttempts {
  readonly counts = { done: 0, refused: 0, sampled: 0 }
  readonly #leasing: () => Leasing
  readonly #onFree: () => void
  readonly #tell: (line: string) => void
  readonly #held = new Map<string, Held>()
  #claiming = 0
  /** The lease of an attempt that must be made alone, because earlier makers of it died. */
  #suspect: string | undefined

  /** `onFree` is called whenever there is room for more. */
  constructor(leasing: () => Leasing, onFree: () => void, tell: (line: string) => void) {
    this.#leasing = leasing
    this.#onFree = onFree
    this.#tell = tell
  }

  /** Attempts that are not made yet. */
  get size(): number {
    return sizeOf([...this.#held.values()])
  }

  /** Whether it may take nothing more, because it makes an attempt alone. */
  get isFull(): boolean {
    return this.#suspect !== undefined
  }

  /** Claims one attempt whose earlier maker died; nothing else is claimed meanwhile. */
  async claimSuspect(run: string, makers: Makers): Promise<void> {
    await this.#take(makers, leasing => leasing.claim(run, 1, true))
    this.#suspect = [...this.#held.keys()][0]
  }

  /** What of a run it has. */
  leasedOf(run: string): readonly Leased[] {
    return [...this.#held.values()].flatMap(({ leased }) => (leased.run === run ? leased : []))
  }

  /** How many attempts of a run it has. */
  holds(run: string): number {
    return sizeOf([...this.#held.values()].filter(({ leased }) => leased.run === run))
  }

  /**
   * Takes attempts of a run on; gives whether there may be more. If there were too few, the worker asks
   * to be woken and looks again: what came in between would wake nobody.
   */
  async claim(run: string, most: number, makers: Makers): Promise<boolean> {
    const claim = (count: number): Promise<number> =>
      this.#take(makers, leasing => leasing.claim(run, count))
    const first = await claim(most)
    if (first >= most) return true
    await this.#leasing().want(run, most - first)
    return first + (await claim(most - first)) >= most
  }

  /**
   * Stops attempts that were withdrawn or given to others, and gives back those that only the database
   * believes it holds: the answer to a claim may be lost with a connection.
   */
  async compare(): Promise<void> {
    const leasing = this.#leasing()
    const before = new Set(this.#held.keys())
    const theirs = new Set((await leasing.held()).map(({ lease }) => lease))
    for (const [lease, { stop }] of this.#held) {
      if (before.has(lease) && !theirs.has(lease)) stop.abort(new Error('it was withdrawn'))
    }
    const unknown = [...theirs].filter(lease => !before.has(lease) && !this.#held.has(lease))
    // While a claim is under way, unknown leases may be its own.
    if (unknown.length > 0 && this.#claiming === 0) await leasing.giveBack(unknown)
  }

  /** Lets go of everything; gives what it was. */
  dropAll(reason: string): readonly Leased[] {
    const held = [...this.#held.values()]
    for (const { stop } of held) stop.abort(new Error(reason))
    return held.map(({ leased }) => leased)
  }

  /** Waits until nothing is left, but no longer than this. */
  async empty(seconds: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>(resolve => {
      timer = startTimer(resolve, seconds * 1000)
    })
    await Promise.race([this.#settled(), late])
    clearTimeout(timer)
  }

  /** Hands back all that is left; code that does not listen to its signal is not waited for. */
  async giveBack(): Promise<void> {
    const leases = this.dropAll('the worker was stopped').map(({ lease }) => lease)
    if (leases.length > 0)
      await this.#leasing()
        .giveBack(leases)
        .catch(() => undefined)
    await this.empty(lastSeconds)
  }

  async #take(
    makers: Makers,
    claim: (leasing: Leasing) => Promise<readonly Leased[]>,
  ): Promise<number> {
    const leasing = this.#leasing()
    this.#claiming++
    try {
      const claimed = await claim(leasing)
      const begun = await makers.turns?.begun(claimed)
      for (const leased of claimed) {
        const left = leased.members ?? 1
        const turns = begun?.get(leased.id)
        const each: Held = { leased, stop: new AbortController(), leasing, left, begun: turns }
        this.#held.set(leased.lease, each)
        each.done = this.#make(each, makers)
      }
      return claimed.reduce((sum, { members }) => sum + (members ?? 1), 0)
    } finally {
      this.#claiming--
    }
  }

  async #settled(): Promise<void> {
    await Promise.allSettled([...this.#held.values()].map(({ done }) => done))
  }

  async #make(held: Held, makers: Makers): Promise<void> {
    const { leased, stop, leasing } = held
    try {
      const made = await this.#madeOf(held, makers)
      const isTaken = await this.#write(held, async () => {
        const bytes = 'of' in made ? packSpent(made.of) : await this.#packed(made.piece, makers)
        return await leasing.finish(leased, bytes)
      })
      if (isTaken) {
        this.counts.done += leased.members ?? 1
        const isWhole = leased.members !== null && 'piece' in made
        for (const id of isWhole ? idsIn(made.piece) : [leased.id]) makers.turns?.over(id)
      } else this.counts.refused++
    } catch (error) {
      if (stop.signal.aborted) return
      await leasing.fail(leased, withoutSecrets(describeCause(error))).catch(() => undefined)
    } finally {
      this.#held.delete(leased.lease)
      if (this.#suspect === leased.lease) this.#suspect = undefined
      this.#onFree()
    }
  }

  /** Makes what is leased; gives what came last, once the parts before that are written. */
  async #madeOf(held: Held, makers: Makers): Promise<Last> {
    const { leased, stop, begun } = held
    const call = { signal: stop.signal, making: leased.lease }
    const work = { ...unpackWork(leased.work), ...(begun && { begun }) }
    if (leased.members === null) return this.#last(held, await makers.make(work as Work, call))
    const parts: Promise<void>[] = []
    const made = await makers.makeGroup(work as GroupWork, {
      ...call,
      onBegin: () => undefined,
      onPiece: piece => {
        const written = this.#keep(held, piece, makers)
        written.catch(() => undefined)
        parts.push(written)
        return written
      },
    })
    await Promise.all(parts)
    return this.#last(held, made)
  }

  async #keep(held: Held, piece: Piece, makers: Makers): Promise<void> {
    const { leased, leasing, stop } = held
    this.#count(held, piece)
    this.#onFree()
    const isTaken = await this.#write(held, async () =>
      leasing.keep(leased, await this.#packed(piece, makers)),
    )
    if (isTaken) for (const id of idsIn(piece)) makers.turns?.over(id)
    else stop.abort(new Error('the lease was lost'))
  }

  #last(held: Held, made: Returned | ReturnedGroup): Last {
    if (made.kind === 'spent') return made
    if (made.kind !== 'made') throw new Error(made.kind === 'poisoned' ? made.reason : made.kind)
    const piece = 'piece' in made ? made.piece : made.sent!
    this.#count(held, piece)
    return { piece }
  }

  #count(held: Held, piece: Piece): void {
    held.left -= piece.count
    this.counts.sampled += piece.sampled
  }

  async #packed(piece: Piece, { segment, sendImages }: Makers): Promise<Buffer> {
    const [bytes] = await Promise.all([packPiece(piece, segment), sendImages()])
    if (bytes.length > mostBytes) throw new TooLargeError(bytes.length)
    return bytes
  }

  /** Writes a result or a part, again and again while it is still asked for: that it cannot be written is nobody's try. */
  async #write({ leased, stop }: Held, write: () => Promise<boolean>): Promise<boolean> {
    for (let apart = 0.1; ; apart = Math.min(30, apart * 2)) {
      try {
        return await write()
      } catch (error) {
        if (error instanceof TooLargeError) throw error
        stop.signal.throwIfAborted()
        this.#tell(`the result of ${leased.id} is not written yet: ${describeCause(error)}`)
        await wait(apart * 1000, undefined, { signal: stop.signal })
      }
    }
  }
}

/** What ends what was leased. */
type Last = { readonly piece: Piece } | Extract<Returned, { readonly kind: 'spent' }>

const idsIn = ({ notes }: Piece): readonly string[] => notes.map(([id]) => id)

const sizeOf = (held: readonly Held[]): number => held.reduce((sum, { left }) => sum + left, 0)

/** The largest result that is sent: PostgreSQL takes no value of a gigabyte. */
const mostBytes = 1 << 29

class TooLargeError extends Error {
  constructor(bytes: number) {
    super(
      `its result of ${Math.ceil(bytes / 1e6)} MB is larger than a database takes (${mostBytes >> 20} MiB): name --segments`,
    )
  }
}
