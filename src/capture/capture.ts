import { joinSignals } from '../core/call.ts'
import { Failure } from '../core/failure.ts'
import { isGradableOutcome, type Outcome } from '../core/outcome.ts'
import type { Tree } from '../core/tree.ts'
import { outcomeOf } from '../rollout/end-walk.ts'
import { answerRequest } from './answer.ts'
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

/** A request that is answered or was: who asks the same again gets the same. */
interface Asked {
  readonly answers: Promise<readonly ChatAnswer[]>
  /** Whether it was its own request that stopped it. */
  isCut: boolean
}

class CapturedAttempt implements Capture {
  readonly #options: CaptureOptions
  readonly #seats = new Map<string, Seat>()
  readonly #asked = new Map<string, Asked>()
  readonly #running = new Set<Promise<unknown>>()
  readonly #stop = new AbortController()
  readonly #started: number
  #ticks = 0
  #ended: Outcome | undefined
  #failure: Error | undefined
  #isFull = false
  #trees: Promise<readonly [Tree, ...Tree[]]> | undefined

  constructor(options: CaptureOptions) {
    this.#options = options
    this.#started = options.context.clock()
    for (const name of options.seats ?? ['']) {
      this.#seats.set(name, openSeat(name, options.context))
    }
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

  async respond(request: ChatRequest, call: ChatCall): Promise<readonly ChatAnswer[]> {
    const { requestId } = request
    const before = requestId === undefined ? undefined : this.#asked.get(requestId)
    if (before) {
      const again = await this.#sameAnswer(before, call)
      if (again) return again
    }
    const asked: Asked = { answers: this.#answer(request, call), isCut: false }
    if (requestId !== undefined) this.#asked.set(requestId, asked)
    this.#running.add(asked.answers)
    try {
      const answers = await asked.answers
      this.#isFull = false
      return answers
    } catch (error) {
      asked.isCut = call.signal.aborted
      this.#isFull = error instanceof ContextIsFull
      if (error instanceof Failure) this.#failure ??= error
      throw error
    } finally {
      this.#running.delete(asked.answers)
    }
  }

  /** What the same request was answered with; nothing where it died with whoever asked first. */
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
    const { attempt } = this.#options
    const { signal, release } = joinSignals([call.signal, attempt.signal, this.#stop.signal])
    try {
      return await answerRequest(request, {
        ...this.#options,
        context: seat.context,
        attempt: { ...attempt, signal },
        call,
        seat,
        isAlone: this.#running.size === 0,
        tick: () => this.#ticks++,
        end: outcome => {
          this.#ended ??= outcome
        },
      })
    } finally {
      release()
    }
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
    this.#stop.abort(new AttemptIsOver(outcome))
    await Promise.allSettled(this.#running)
    const seconds = this.#options.context.clock() - this.#started
    const trees = [...this.#seats.values()].map(seat =>
      closeSeat(this.#options.attempt, seat, { ...ending, outcome, seconds }),
    )
    return trees as [Tree, ...Tree[]]
  }

  /** What broke or was stopped is that; what else ended did so by a limit, or by itself. */
  #outcomeOf({ outcome }: CaptureEnding): Outcome {
    if (outcome && !isGradableOutcome(outcome)) return outcome
    return this.ended ?? outcome ?? { kind: 'completed' }
  }

  #seatOf(name: string): Seat {
    const seat = this.#seats.get(name)
    if (seat) return seat
    const names = [...this.#seats.keys()].join(', ')
    throw new TypeError(`there is no seat "${name}". Known: ${names}.`)
  }
}
