import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Database } from './database.ts'
import { LeasedAttempts, type Makers } from './leased-attempts.ts'
import { type Leased, Leasing, type RunState } from './leasing.ts'
import { threadsOf, type WorkerThreads } from './makers.ts'
import { workChannel } from './placing.ts'
import { RunsServed } from './runs-served.ts'

/** How a worker works. */
export interface WorkerOptions {
  /** Attempts at one time. */
  readonly concurrency: number
  /** Threads that make them. @default 1 */
  readonly threads?: WorkerThreads
  /** Seconds without a sign of life after which what it holds is given to others. @default 30 */
  readonly lease?: number
  /** Seconds that attempts under way are given when it is stopped. @default 30 */
  readonly grace?: number
  readonly tell: (line: string) => void
  /** Stops it: it takes nothing more, ends what it can within its grace, and hands back the rest. */
  readonly signal: AbortSignal
}

/** Seconds between checks of the queue while nothing is announced. */
const pollSeconds = 2

/**
 * Rolls attempts of every run in the database until it is stopped. Returns how many handed-back attempts
 * are still running, because their code ignores its signal.
 */
export async function work(database: Database, options: WorkerOptions): Promise<number> {
  const worker = new Worker(database, options)
  await worker.enter()
  await worker.run()
  return worker.left
}

/** A run that can be served, as it was when it was last looked at. */
interface Open {
  readonly state: RunState
  readonly makers: Makers
  /** Whether it may have something that nobody has taken yet. */
  hasWork: boolean
}

class Worker {
  readonly #database: Database
  readonly #options: WorkerOptions & { readonly lease: number; readonly grace: number }
  readonly #attempts: LeasedAttempts
  readonly #runs: RunsServed
  #leasing: Leasing
  #beating: Promise<void> = Promise.resolve()
  #failure: unknown
  #open: readonly Open[] = []
  /** Whether runs may have changed since they were looked at. */
  #isStale = true
  #isWoken = false
  #wakeUp = (): void => {}

  constructor(database: Database, options: WorkerOptions) {
    this.#database = database
    this.#options = { lease: 30, grace: 30, ...options }
    this.#leasing = new Leasing(database, randomUUID())
    const now = (): Leasing => this.#leasing
    this.#attempts = new LeasedAttempts(now, () => this.#wake(), options.tell)
    const held = (run: string): readonly Leased[] => this.#attempts.leasedOf(run)
    this.#runs = new RunsServed(now, { ...options, database, held })
  }

  async enter(): Promise<void> {
    const { concurrency, lease, threads = 1 } = this.#options
    const about = { host: hostname(), concurrency, threads: threadsOf(threads), lease }
    await this.#leasing.enter(about)
  }

  /** Attempts that have not ended. */
  get left(): number {
    return this.#attempts.size
  }

  async run(): Promise<void> {
    const { signal, lease, grace } = this.#options
    await this.#database.listen(workChannel, () => this.#hearOfRuns())
    await this.#listen()
    const beats = setInterval(() => this.#beat(), (lease * 1000) / 3)
    signal.addEventListener('abort', () => this.#wake())
    try {
      while (!signal.aborted) await this.#turn()
      this.#beat()
      await this.#attempts.empty(grace)
    } catch (error) {
      // A database that does not answer does not keep a worker that was stopped.
      if (!signal.aborted) throw error
    } finally {
      clearInterval(beats)
      await this.#beating
      await this.#attempts.giveBack()
      await this.#leasing.leave().catch(() => undefined)
      await this.#runs[Symbol.asyncDispose]()
    }
  }

  /** A run has changed, or announcements were missed. */
  #hearOfRuns(): void {
    this.#isStale = true
    void this.#attempts.compare().catch(error => this.#fail(error))
    this.#wake()
  }

  /** Listens for work that is meant for this worker, under its name. */
  async #listen(): Promise<void> {
    await this.#database.listen(this.#leasing.channel, run => {
      const known = this.#open.find(({ state }) => state.id === run)
      if (known) known.hasWork = true
      else this.#isStale = true
      this.#wake()
    })
  }

  /** Looks at the queue, takes what there is room for, and waits until there is something new. */
  async #turn(): Promise<void> {
    if (this.#failure) throw this.#failure
    this.#isWoken = false
    await this.#serve()
    if (this.#isWoken || this.#options.signal.aborted) return
    // A random factor, so that workers do not all poll at the same moment.
    const seconds = pollSeconds * (0.75 + Math.random() / 2)
    await new Promise<void>(resolve => {
      const timer = setTimeout(() => {
        this.#isStale = true
        resolve()
      }, seconds * 1000)
      this.#wakeUp = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async #serve(): Promise<void> {
    if (this.#isStale) await this.#look()
    if (this.#attempts.isFull) return
    await this.#claim(this.#open.filter(({ hasWork }) => hasWork))
    const suspect = this.#open.find(({ state }) => state.suspect)
    if (suspect && this.#attempts.size === 0) {
      await this.#attempts.claimSuspect(suspect.state.id, suspect.makers)
    }
  }

  /** Reads the list of runs: opens new ones, leaves finished ones, follows changes. */
  async #look(): Promise<void> {
    this.#isStale = false
    const states = await this.#leasing.runs()
    await this.#runs.leaveOthers(states, run => this.#attempts.holds(run) > 0)
    const open: Open[] = []
    for (const state of states) {
      const makers = await this.#runs.follow(state)
      if (makers) open.push({ state, makers, hasWork: state.waiting })
    }
    this.#open = open
    // Look again whenever there is room, as long as an attempt waits that must be made alone.
    if (open.some(({ state }) => state.suspect)) this.#isStale = true
  }

  /** The run with the fewest attempts here is served first, and none gets more than its share. */
  async #claim(open: readonly Open[]): Promise<void> {
    const held = ({ state }: Open): number => this.#attempts.holds(state.id)
    const ordered = open.toSorted((a, b) => held(a) - held(b))
    for (const [index, each] of ordered.entries()) {
      const free = this.#options.concurrency - this.#attempts.size
      const share = Math.ceil(free / (ordered.length - index))
      if (share <= 0) continue
      each.hasWork = false
      // More may be announced meanwhile.
      if (await this.#attempts.claim(each.state.id, share, each.makers)) each.hasWork = true
    }
  }

  #beat(): void {
    this.#beating = this.#beating
      .then(async () => {
        const { counts, size: running } = this.#attempts
        const isMine = await this.#leasing.beat({
          ...counts,
          running,
          leaving: this.#options.signal.aborted,
        })
        // An announcement may have been missed.
        this.#isStale = true
        if (isMine) await this.#attempts.compare()
        else await this.#becomeNew()
      })
      .catch(error => this.#fail(error))
  }

  /** Its attempts were given to others, so it takes a new name and joins again. */
  async #becomeNew(): Promise<void> {
    this.#options.tell('this worker was silent for too long: what it held is rolled elsewhere')
    const held = this.#attempts.dropAll('the lease was lost')
    this.#leasing = new Leasing(this.#database, randomUUID())
    await this.enter()
    await this.#listen()
    await this.#leasing.forgive(held)
    await this.#runs.attendAgain()
  }

  #fail(error: unknown): void {
    this.#failure = error
    this.#wake()
  }

  #wake(): void {
    this.#isWoken = true
    this.#wakeUp()
  }
}
