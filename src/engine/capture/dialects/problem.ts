import { Failure, RunEndingError } from '../../../base/core/failure.ts'
import { AttemptIsOver, ContextIsFull } from '../contract.ts'

/** What kind of thing is wrong with a request; every dialect has its own words and status for it. */
export type ProblemKind =
  | 'invalid'
  | 'unsupported'
  | 'context'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  | 'conflict'
  | 'over'
  | 'too-large'
  | 'too-many'
  | 'unavailable'
  | 'internal'

/** A request that cannot be answered, with words for whoever sent it. */
export class RequestProblem extends Error {
  override name = 'RequestProblem'
  readonly kind: ProblemKind
  /** The field that is wrong, if it is one. */
  readonly field: string | undefined

  constructor(kind: ProblemKind, message: string, field?: string) {
    super(message)
    this.kind = kind
    this.field = field
  }
}

const statuses: Readonly<Record<ProblemKind, number>> = {
  invalid: 400,
  unsupported: 400,
  context: 400,
  unauthorized: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 409,
  over: 410,
  'too-large': 413,
  'too-many': 429,
  unavailable: 503,
  internal: 500,
}

/** The HTTP status of a problem. */
export function statusOfProblem(kind: ProblemKind): number {
  return statuses[kind]
}

/**
 * Turns anything thrown into a problem. A context that is too long is named as such, so that agents
 * that can shorten theirs do; an unknown error's message is not passed on.
 */
export function toProblem(cause: unknown): RequestProblem {
  if (cause instanceof RequestProblem) return cause
  if (cause instanceof ContextIsFull) return new RequestProblem('context', cause.message)
  if (cause instanceof AttemptIsOver) return new RequestProblem('over', cause.message)
  if (cause instanceof Failure) {
    const message = `the ${cause.boundary} failed: ${cause.message.slice(0, 500)}`
    // A chat template that cannot write these messages never will: clients should not retry.
    return new RequestProblem(
      cause.boundary === 'renderer' ? 'unsupported' : 'unavailable',
      message,
    )
  }
  if (cause instanceof RunEndingError) {
    return new RequestProblem('unavailable', 'what was sampled cannot be recorded: try again later')
  }
  return new RequestProblem('internal', 'the request could not be answered: an internal error')
}
