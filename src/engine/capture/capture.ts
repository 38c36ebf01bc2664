import { imagesIn } from '@espalier/text'
import { joinSignals } from '../../base/core/call.ts'
import { Failure, RunEndingError } from '../../base/core/failure.ts'
import { isGradableOutcome, type Outcome } from '../../base/core/outcome.ts'
import type { Tree } from '../../base/core/tree.ts'
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
import { tellAgain } from './deltas.ts'
import { shownBy } from './request.ts'
import { makeSeat, type Seat } from './seat.ts'

/** Begins to capture an attempt. */
export function openCapture(options: CaptureOptions): Capture {
  return new CapturedAttempt(options)
}

/** A request that is being answered. */
interface Running {
  readonly controller: AbortController
  /** Where it died in the attempt's order of events, if another request came before it was over. */
  died: number | undefined
  /** Called when it has ended, with or without an answer; set by whoever waits for that. */
  isOver: (() => void) | undefined
}

class CapturedAttempt implements Capture, AttemptOrder {
  readonly #options: CaptureOptions
  readonly #seats: readonly Seat[]
  /** By request id, for requests that have one and are being answered or were. */
  #asked: Map<string, Promise<readonly ChatAnswer[]>> | undefined
  readonly #running = new Set<Running>()
  readonly #started: number
  #ticks = 0
  #ended: Outcome | undefined
  #failure: Failure | undefined
  #unrecorded: RunEndingError | undefined
  #isFull = false
  #trees: Promise<readonly [Tree, ...Tree[]]> | undefined

  constructor(options: CaptureOptions) {
    this.#options = options
    this.#started = options.context.clock()
    this.#seats = (options.seats ?? ['']).map(name => makeSeat(name, options.context))
  }

  get ended(): Outcome | undefined {
    const { signal } = this.#options.attempt
    if (this.#ended || !signal.aborted) return this.#ended
    return outcomeOf(signal.reason, signal)
  }

  get failure(): Failure | undefined {
    return this.#failure
  }

  get unrecorded(): RunEndingError | undefined {
    return this.#unrecorded
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
    this.#asked ??= new Map()
    for (let before = this.#asked.get(requestId); before; before = this.#asked.get(requestId)) {
      const again = await this.#sameAnswer(before, call)
      if (again) return again
    }
    const answers = this.#answer(request, call)
    this.#asked.set(requestId, answers)
    try {
      return await answers
    } catch (error) {
      // It was not answered, so a retry asks anew.
      this.#asked.delete(requestId)
      throw error
    }
  }

  /** The answer to the same request; undefined if it got none. */
  async #sameAnswer(
    before: Promise<readonly ChatAnswer[]>,
    call: ChatCall,
  ): Promise<readonly ChatAnswer[] | undefined> {
    try {
      const answers = await before
      this.#seatOf(call.seat ?? '').tally.events.push({
        kind: 'retry',
        detail: 'a request that had its answer came again',
      })
      tellAgain(call, answers)
      return answers
    } catch (error) {
      if (call.signal.aborted) throw error
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
    const running: Running = { controller, died: undefined, isOver: undefined }
    this.#noteDead()
    const before = { failure: this.#failure, unrecorded: this.#unrecorded }
    this.#running.add(running)
    try {
      const answers = await answerRequest(request, {
        context: seat.context,
        attempt: withSignal(attempt, signal),
        samplingFrom,
        call,
        seat,
        isAlone,
        running,
        order: this,
      })
      this.#isFull = false
      // What failed before this was asked is made up for; what failed meanwhile is not.
      if (this.#failure === before.failure) this.#failure = undefined
      if (this.#unrecorded === before.unrecorded) this.#unrecorded = undefined
      return answers
    } catch (error) {
      this.#isFull = error instanceof ContextIsFull
      if (error instanceof Failure) this.#failure = error
      if (error instanceof RunEndingError) this.#unrecorded = error
      throw error
    } finally {
      release()
      this.#running.delete(running)
      running.isOver?.()
    }
  }

  /** What has died, but is not over, does not run beside what is asked from here on. */
  #noteDead(): void {
    for (const each of this.#running) {
      if (each.controller.signal.aborted) each.died ??= this.#ticks
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

  async countTokens(
    request: ChatRequest,
    { seat = '' }: Pick<ChatCall, 'seat'> = {},
  ): Promise<number> {
    const { context, known, images } = this.#seatOf(seat)
    const { attempt } = this.#options
    const showsImages = imagesIn(request.messages).length > 0
    const asked = showsImages ? await images.admit(request, attempt.signal) : request
    return known.match(shownBy(asked, context), attempt).tokens.length
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

  /** An abort or a failure comes first, unless the agent says what the attempt was worth; then a limit; else it completed. */
  #outcomeOf({ outcome, reward }: CaptureEnding): Outcome {
    const { ended } = this
    const worst = [outcome, ended].find(each => each && !isGradableOutcome(each))
    if (worst) return worst
    if (this.#unrecorded) return failedAs({ boundary: 'store', message: this.#unrecorded.message })
    if (this.#failure && reward === undefined) return failedAs(this.#failure)
    return ended ?? outcome ?? { kind: 'completed' }
  }

  #seatOf(name: string): Seat {
    const seat = this.#seats.find(each => each.name === name)
    if (seat) return seat
    const names = this.#seats.map(each => each.name).join(', ')
    const problem = name === '' ? 'a request names no seat' : `there is no seat "${name}"`
    throw new TypeError(`${problem}: ask as one of ${names}`)
  }
}

/** The outcome of an attempt whose agent ended it behind a failure, whatever it made of that. */
function failedAs({ boundary, message }: Pick<Failure, 'boundary' | 'message'>): Outcome {
  return { kind: 'failed', boundary, message }
}

/** The attempt with the signal of one request. */
function withSignal(attempt: Attempt, signal: AbortSignal): Attempt {
  const own: { -readonly [Name in keyof Attempt]: Attempt[Name] } = { ...attempt }
  own.signal = signal
  return own
}
