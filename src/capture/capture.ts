import { joinSignals } from '../core/call.ts'
import { Failure } from '../core/failure.ts'
import { isGradableOutcome, type Outcome } from '../core/outcome.ts'
import type { Tree } from '../core/tree.ts'
import type { Attempt } from '../rollout/attempt.ts'
import { outcomeOf } from '../rollout/end-walk.ts'
import { type AttemptOrder, answerRequest } from './answer.ts'
import { closeSeat } from './close.ts'
import {
  AttemptIsOver,
  type Capture,
  type CaptureEnding,
  type CaptureOptions,
  type ChatAnswer,
  type ChatCall,
  type ChatRequest,
  ContextIsFull,
} from './contract.ts'
import { shownBy } from './request.ts'
import { openSeat, type Seat } from './seat.ts'

/** Begins to capture an attempt. */
export function openCapture(options: CaptureOptions): Capture {
  return new CapturedAttempt(options)
}

/** A request that is being answered or was: a retry of it gets the same answer. */
interface Asked {
  readonly answers: Promise<readonly ChatAnswer[]>
  /** Whether its own caller aborted it. */
  isCut: boolean
}

/** A request that is being answered. */
interface Running {
  readonly controller: AbortController
  /** Called when it has ended, with or without an answer; set by whoever waits for that. */
  isOver: (() => void) | undefined
}

class CapturedAttempt implements Capture, AttemptOrder {
  readonly #options: CaptureOptions
  readonly #seats: readonly Seat[]
  /** By request id, for requests that have one. */
  #asked: Map<string, Asked> | undefined
  readonly #running = new Set<Running>()
  readonly #started: number
  #ticks = 0
  #ended: Outcome | undefined
  #failure: Error | undefined
  #isFull = false
  #trees: Promise<readonly [Tree, ...Tree[]]> | undefined

  constructor(options: CaptureOptions) {
    this.#options = options
    this.#started = options.context.clock()
    this.#seats = (options.seats ?? ['']).map(name => openSeat(name, options.context))
  }

  get ended(): Outcome | undefined {
    const { signal } = this.#options.attempt
    if (this.#ended || !signal.aborted) return this.#ended
    return outcomeOf(signal.reason, signal)
  }

  get failure(): Error | undefined {
    return this.#failure
  }

  get refusal(): Outcome | undefined {
    return this.#isFull ? { kind: 'truncated', limit: 'context' } : undefined
  }

  respond(request: ChatRequest, call: ChatCall): Promise<readonly ChatAnswer[]> {
    const { requestId } = request
    return requestId === undefined
      ? this.#answer(request, call)
      : this.#answerNamed(request, requestId, call)
  }

  async #answerNamed(
    request: ChatRequest,
    requestId: string,
    call: ChatCall,
  ): Promise<readonly ChatAnswer[]> {
    const before = this.#asked?.get(requestId)
    if (before) {
      const again = await this.#sameAnswer(before, call)
      if (again) return again
    }
    const asked: Asked = { answers: this.#answer(request, call), isCut: false }
    this.#asked ??= new Map()
    this.#asked.set(requestId, asked)
    try {
      return await asked.answers
    } catch (error) {
      asked.isCut = call.signal.aborted
      throw error
    }
  }

  /** The answer to the same request; undefined if the first caller aborted it. */
  async #sameAnswer(before: Asked, call: ChatCall): Promise<readonly ChatAnswer[] | undefined> {
    try {
      const answers = await before.answers
      this.#seatOf(call.seat ?? '').tally.events.push({
        kind: 'retry',
        detail: 'a request that had its answer came again',
      })
      return answers
    } catch (error) {
      if (!before.isCut || call.signal.aborted) throw error
      return undefined
    }
  }

  async #answer(request: ChatRequest, call: ChatCall): Promise<readonly ChatAnswer[]> {
    this.#refuseLate()
    call.signal.throwIfAborted()
    const seat = this.#seatOf(call.seat ?? '')
    const { attempt, samplingFrom = 'run' } = this.#options
    const controller = call.controller ?? new AbortController()
    const others = call.controller ? [attempt.signal] : [call.signal, attempt.signal]
    const { signal, release } = joinSignals(others, controller)
    const isAlone = this.#running.size === 0
    const running: Running = { controller, isOver: undefined }
    this.#running.add(running)
    try {
      const answers = await answerRequest(request, {
        context: seat.context,
        attempt: withSignal(attempt, signal),
        samplingFrom,
        call,
        seat,
        isAlone,
        order: this,
      })
      this.#isFull = false
      return answers
    } catch (error) {
      this.#isFull = error instanceof ContextIsFull
      if (error instanceof Failure) this.#failure ??= error
      throw error
    } finally {
      release()
      this.#running.delete(running)
      running.isOver?.()
    }
  }

  tick(): number {
    return this.#ticks++
  }

  /** Ends the attempt: later requests are refused. */
  endWith(outcome: Outcome): void {
    this.#ended ??= outcome
  }

  #refuseLate(): void {
    const outcome = this.ended ?? (this.#trees && ({ kind: 'completed' } as const))
    if (outcome) throw new AttemptIsOver(outcome)
  }

  countTokens(request: ChatRequest, { seat = '' }: Pick<ChatCall, 'seat'> = {}): number {
    const { context, known } = this.#seatOf(seat)
    return known.match(shownBy(request, context), this.#options.attempt).tokens.length
  }

  end(ending: CaptureEnding = {}): Promise<readonly [Tree, ...Tree[]]> {
    this.#trees ??= this.#close(ending)
    return this.#trees
  }

  async #close(ending: CaptureEnding): Promise<readonly [Tree, ...Tree[]]> {
    const outcome = this.#outcomeOf(ending)
    await this.#cut(new AttemptIsOver(outcome))
    const seconds = this.#options.context.clock() - this.#started
    const trees = this.#seats.map(seat => {
      const isUnasked = seat.known.turns.length === 0 && isGradableOutcome(outcome)
      const own = (isUnasked ? ending.unasked : undefined) ?? outcome
      return closeSeat(this.#options.attempt, seat, { ...ending, outcome: own, seconds })
    })
    return trees as [Tree, ...Tree[]]
  }

  /** Stops what is being answered, and waits until all of it has stopped. */
  async #cut(reason: AttemptIsOver): Promise<void> {
    const over = [...this.#running].map(
      running =>
        new Promise<void>(resolve => {
          running.isOver = resolve
        }),
    )
    for (const { controller } of this.#running) controller.abort(reason)
    await Promise.all(over)
  }

  /** A failure or an abort comes first; then a limit; else it completed. */
  #outcomeOf({ outcome }: CaptureEnding): Outcome {
    if (outcome && !isGradableOutcome(outcome)) return outcome
    return this.ended ?? outcome ?? { kind: 'completed' }
  }

  #seatOf(name: string): Seat {
    const seat = this.#seats.find(each => each.name === name)
    if (seat) return seat
    const names = this.#seats.map(each => each.name).join(', ')
    const problem = name === '' ? 'a request names no seat' : `there is no seat "${name}"`
    throw new TypeError(`${problem}: ask as one of ${names}`)
  }
}

/** The attempt with the signal of one request. */
function withSignal(attempt: Attempt, signal: AbortSignal): Attempt {
  const own: { -readonly [Name in keyof Attempt]: Attempt[Name] } = { ...attempt }
  own.signal = signal
  return own
}
