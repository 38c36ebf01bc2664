import { aroundPolicy, type Draw, type Question } from '../../base/core/around.ts'
import type { Policy, SampleKey } from '../../base/core/policy.ts'
import { type Clock, systemClock } from '../../base/core/process/clock.ts'
import { randomAt, seedOf } from '../../base/math/random.ts'
import { isPassing, ServerError } from './transport/server-error.ts'

/** One request to a policy. */
export interface Operation {
  readonly kind: 'sample' | 'several' | Question<unknown>['kind']
  /** The tree it belongs to; '' if it belongs to none. */
  readonly session: string
  readonly key?: SampleKey
}

/** How often and how fast to try again. */
export interface RetryOptions {
  /** Attempts in all. @default 6 */
  readonly attempts?: number
  /** Seconds before the second attempt, doubled before each further one. @default 0.5 */
  readonly firstWaitSeconds?: number
  /** The most seconds to wait between attempts, unless the server asks for more. @default 30 */
  readonly longestWaitSeconds?: number
  /** Seconds after which nothing is tried again. @default 1800 */
  readonly deadlineSeconds?: number
  readonly clock?: Clock
  /** Spreads the waits: a number in [0, 1). @default a function of the sample's key */
  readonly random?: (operation: Operation, attempt: number) => number
  /** Called with every retry before it waits. */
  readonly onRetry?: (retry: Retry) => void
}

/** An attempt that failed and will be repeated. */
export interface Retry {
  readonly operation: Operation
  /** Counted from 1. */
  readonly attempt: number
  readonly waitSeconds: number
  readonly cause: ServerError
}

/**
 * Tries again when the server was busy (429), broken (5xx) or cut the connection; never after
 * another refusal, a wrong answer or a missed deadline. Waits grow, spread and honour Retry-After.
 */
export function withRetries(policy: Policy, options: RetryOptions = {}): Policy {
  const settings = { attempts: 6, deadlineSeconds: 1800, clock: systemClock, ...options }
  const { attempts, deadlineSeconds, clock, onRetry } = settings

  /** Asks until it is answered, or until asking again does not help. */
  async function repeat<T>(operation: Operation, asked: Asked<T>): Promise<T> {
    const start = clock.now()
    try {
      return await asked.ask()
    } catch (cause) {
      return await again(cause, operation, { ...asked, start })
    }
  }

  async function again<T>(failure: unknown, operation: Operation, asked: Failed<T>): Promise<T> {
    let cause = failure
    for (let attempt = 1; ; attempt++) {
      if (!isPassing(cause)) throw cause
      const passed = (clock.now() - asked.start) / 1000
      const waitSeconds = waitAfter(cause, { operation, attempt }, settings)
      if (attempt >= attempts || passed + waitSeconds > deadlineSeconds) {
        throw attempt === 1 ? cause : gaveUp(cause, attempt, passed)
      }
      onRetry?.({ operation, attempt, waitSeconds, cause })
      await clock.sleep(waitSeconds * 1000, asked.call.signal)
      try {
        return await asked.ask()
      } catch (next) {
        cause = next
      }
    }
  }
  return {
    ...aroundPolicy(policy, {
      draw: draw => repeat(drawing(draw), draw),
      question: question => repeat({ kind: question.kind, session: question.session }, question),
    }),
    // Most samples come at once, and there are many: only what failed is a draw that is repeated.
    sample(request, call) {
      const start = clock.now()
      return policy.sample(request, call).catch((cause: unknown) => {
        const ask = () => policy.sample(request, call)
        const { session, key } = request
        return again(cause, { kind: 'sample', session, key }, { call, ask, start })
      })
    },
  }
}

type Asked<T> = Pick<Question<T>, 'call' | 'ask'>

/** What failed once; it was begun at `start`, in milliseconds. */
type Failed<T> = Asked<T> & { readonly start: number }

function drawing({ request: { session, key }, seeds }: Draw): Operation {
  return { kind: seeds.length > 1 ? 'several' : 'sample', session, key }
}

function waitAfter(
  { retryAfterSeconds }: ServerError,
  { operation, attempt }: Pick<Retry, 'operation' | 'attempt'>,
  options: RetryOptions,
): number {
  const { firstWaitSeconds = 0.5, longestWaitSeconds = 30, random = keyedRandom } = options
  const longest = Math.min(longestWaitSeconds, firstWaitSeconds * 2 ** (attempt - 1))
  const spread = random(operation, attempt)
  if (retryAfterSeconds !== undefined) return retryAfterSeconds + (spread * longest) / 2
  return longest * (0.5 + spread / 2)
}

function keyedRandom({ kind, session, key }: Operation, attempt: number): number {
  const seed = key
    ? seedOf('retry', kind, key.task, key.member, key.branch, key.turn)
    : seedOf('retry', kind, session)
  return randomAt(seed, attempt)
}

function gaveUp(cause: ServerError, attempts: number, seconds: number): ServerError {
  const { problem, status } = cause
  const message = `gave up after ${attempts} attempts in ${seconds.toFixed(1)} s: ${cause.message}`
  return new ServerError(problem, message, { cause, ...(status === undefined ? {} : { status }) })
}
