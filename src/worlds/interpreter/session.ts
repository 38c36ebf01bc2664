import type { Call } from '../../base/core/call.ts'
import { Failure } from '../../base/core/failure.ts'
import type { Lease } from '../../engine/environments/pool.ts'
import type { Interpreter, Ran } from './child.ts'
import type { Holder, Interpreters } from './interpreters.ts'

/** What a session needs. */
export interface SessionOptions {
  readonly interpreters: Interpreters
  readonly seed: number
  readonly seconds: number
}

/** One piece of code that ran, and what became of it. */
interface Cell {
  readonly code: string
  readonly ran: Ran
}

/** How a piece of code is run. */
export interface RunCall extends Call {
  /** Set in a replay: whether it ran out of time before, in which case it is not run again. */
  readonly replay?: { readonly ranOut: boolean }
}

/** When code runs again in a replay, its time limit is this many times longer, as the machine may be busier. */
const patience = 3

/**
 * The code of one attempt in one language: it keeps what earlier code defined. The process behind it
 * can be taken away at any time; what ran is then run again in another, and must give the same.
 */
export class Session implements Holder {
  readonly #options: SessionOptions
  #cells: Cell[]
  #lease: Lease<Interpreter> | undefined
  #queue: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(options: SessionOptions, cells: readonly Cell[] = []) {
    this.#options = options
    this.#cells = [...cells]
  }

  /** Runs code after all that was asked for before. */
  run(code: string, call: RunCall): Promise<Ran> {
    const running = this.#queue.then(() => this.#run(code, call))
    this.#queue = running.catch(() => {})
    return running
  }

  /** A copy of this session that goes on by itself. */
  async fork(): Promise<Session> {
    await this.#queue
    return new Session(this.#options, this.#cells)
  }

  async release(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    await lease?.[Symbol.asyncDispose]()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.interpreters.wake(this)
    await this.#queue
    await this.release()
  }

  async #run(code: string, { signal, replay }: RunCall): Promise<Ran> {
    signal.throwIfAborted()
    if (this.#isClosed) throw new Error('the world of this code is closed')
    if (replay?.ranOut) return await this.#forget({ kind: 'gone', why: 'time' })
    const { interpreters, seconds } = this.#options
    interpreters.wake(this)
    try {
      const interpreter = await this.#ready({ signal })
      const ran = await interpreter.run(code, {
        signal,
        seconds: replay ? patience * seconds : seconds,
      })
      if (ran.kind === 'gone') return await this.#forget(ran)
      this.#cells.push({ code, ran })
      await interpreters.rest(this)
      return ran
    } catch (cause) {
      // Code stopped half way leaves an unknown state.
      await this.#drop()
      throw cause
    }
  }

  async #forget(ran: Ran): Promise<Ran> {
    this.#cells = []
    await this.#drop()
    return ran
  }

  async #drop(): Promise<void> {
    this.#lease?.condemn()
    await this.release()
  }

  /** The process, with everything run again that this session ran before. */
  async #ready(call: Call): Promise<Interpreter> {
    if (this.#lease?.member.isAlive) return this.#lease.member
    await this.release()
    const { interpreters, seed, seconds } = this.#options
    const lease = await interpreters.take(call)
    this.#lease = lease
    await lease.member.seed(seed, call)
    for (const [index, { code, ran }] of this.#cells.entries()) {
      const again = await lease.member.run(code, { ...call, seconds: patience * seconds })
      compare(ran, again, index)
    }
    return lease.member
  }
}

function compare(then: Ran, now: Ran, index: number): void {
  if (JSON.stringify(then) === JSON.stringify(now)) return
  throw new Failure('environment', {
    cause: new Error(
      `Code that ran again, piece ${index}, gave something else: ${brief(then)} before, ${brief(now)} now.`,
    ),
  })
}

function brief(ran: Ran): string {
  if (ran.kind === 'gone') return `an end by ${ran.why}`
  return JSON.stringify(`${ran.printed}${ran.text}`.slice(0, 200))
}
