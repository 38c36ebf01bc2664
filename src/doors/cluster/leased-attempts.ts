import { setTimeout as wait } from 'node:timers/promises'
import { describeCause } from '../../base/core/failure.ts'
import { withoutSecrets } from '../../base/core/process/secrets.ts'
import { startTimer } from '../../base/core/process/timer.ts'
import { type ServedRun, sampledIn } from '../../run/run/served/served-run.ts'
import type { Leased, Leasing } from './leasing.ts'
import { packServed, unpackWork } from './parcel.ts'

interface Held {
  readonly leased: Leased
  readonly stop: AbortController
  /** Under which name it was leased: a worker that was given up takes a new name. */
  readonly leasing: Leasing
}

/** Seconds that attempts get to end after they were stopped. */
const lastSeconds = 1

/** The attempts that a worker is making. */
export class LeasedAttempts {
  readonly counts = { done: 0, refused: 0, sampled: 0 }
  readonly #leasing: () => Leasing
  readonly #onFree: () => void
  readonly #tell: (line: string) => void
  readonly #held = new Map<string, Held & { readonly done: Promise<void> }>()
  #claiming = 0
  /** The lease of an attempt that must be made alone, because earlier makers of it died. */
  #suspect: string | undefined

  /** `onFree` is called whenever there is room for more. */
  constructor(leasing: () => Leasing, onFree: () => void, tell: (line: string) => void) {
    this.#leasing = leasing
    this.#onFree = onFree
    this.#tell = tell
  }

  get size(): number {
    return this.#held.size
  }

  /** Whether it may take nothing more, because it makes an attempt alone. */
  get isFull(): boolean {
    return this.#suspect !== undefined
  }

  /** Claims one attempt whose earlier maker died; nothing else is claimed meanwhile. */
  async claimSuspect(run: string, served: ServedRun): Promise<void> {
    await this.#take(served, leasing => leasing.claim(run, 1, true))
    this.#suspect = [...this.#held.keys()][0]
  }

  /** How many attempts of a run it has. */
  holds(run: string): number {
    return [...this.#held.values()].filter(({ leased }) => leased.run === run).length
  }

  /**
   * Takes attempts of a run on; gives whether there may be more. If there were too few, the worker asks
   * to be woken and looks again: what came in between would wake nobody.
   */
  async claim(run: string, most: number, served: ServedRun): Promise<boolean> {
    const claim = (count: number): Promise<number> =>
      this.#take(served, leasing => leasing.claim(run, count))
    const first = await claim(most)
    if (first === most) return true
    await this.#leasing().want(run, most - first)
    return first + (await claim(most - first)) === most
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
    served: ServedRun,
    claim: (leasing: Leasing) => Promise<readonly Leased[]>,
  ): Promise<number> {
    const leasing = this.#leasing()
    this.#claiming++
    try {
      const claimed = await claim(leasing)
      for (const leased of claimed) {
        const held = { leased, stop: new AbortController(), leasing }
        this.#held.set(leased.lease, { ...held, done: this.#make(held, served) })
      }
      return claimed.length
    } finally {
      this.#claiming--
    }
  }

  async #settled(): Promise<void> {
    await Promise.allSettled([...this.#held.values()].map(({ done }) => done))
  }

  async #make({ leased, stop, leasing }: Held, served: ServedRun): Promise<void> {
    const call = { signal: stop.signal, making: leased.lease }
    try {
      const made = await served.make(unpackWork(leased.work), call)
      const bytes = packServed(made)
      if (bytes.length > mostBytes) throw new Error(tooLarge(bytes.length))
      if (await this.#write({ leased, stop, leasing }, bytes)) {
        this.counts.done++
        this.counts.sampled += sampledIn(made)
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

  /** Writes a result, again and again while it is still asked for: that it cannot be written is nobody's try. */
  async #write({ leased, stop, leasing }: Held, bytes: Buffer): Promise<boolean> {
    for (let apart = 0.1; ; apart = Math.min(30, apart * 2)) {
      try {
        return await leasing.finish(leased, bytes)
      } catch (error) {
        stop.signal.throwIfAborted()
        this.#tell(`the result of ${leased.id} is not written yet: ${describeCause(error)}`)
        await wait(apart * 1000, undefined, { signal: stop.signal })
      }
    }
  }
}

/** The largest result that is sent: PostgreSQL takes no value of a gigabyte. */
const mostBytes = 1 << 29

function tooLarge(bytes: number): string {
  return `its result of ${Math.ceil(bytes / 1e6)} MB is larger than a database takes (${mostBytes >> 20} MiB)`
}
