import { untakenReason } from '../../../base/core/process/absences.ts'

/**
 * What went wrong with a server: it answered with an error status, the connection broke, its
 * answer was not what the protocol promises, or it did not answer in time.
 */
export type ServerProblem = 'status' | 'connection' | 'answer' | 'deadline'

/** Details that a caller can act on. */
export interface ServerErrorDetails {
  readonly status?: number
  /** What the server's Retry-After asks for. */
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** A failed request to a server. Retries and balancing look at `problem` and `status`. */
export class ServerError extends Error {
  override name = 'ServerError'
  readonly problem: ServerProblem
  readonly status: number | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(problem: ServerProblem, message: string, details: ServerErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.problem = problem
    this.status = details.status
    this.retryAfterSeconds = details.retryAfterSeconds
  }
}

/** Whether the server said that it does not know the path at all. */
export function isUnknownPath(error: unknown): boolean {
  return (
    error instanceof ServerError &&
    (error.status === 404 || error.status === 405 || error.status === 501)
  )
}

/** Whether trying again may help: the server was busy or broken, or the connection was. */
export function isPassing(error: unknown): error is ServerError {
  if (!(error instanceof ServerError)) return false
  if (error.problem === 'connection') return true
  // llama.cpp refuses samples whose bytes are not UTF-8, and the same seed samples them again.
  if (error.status === 500 && error.message.includes('does not match the expected')) return false
  return error.status === 429 || (error.status !== undefined && error.status >= 500)
}

/**
 * Why a server is away, if an error says that it is: nothing takes the connection, or what does answers that
 * nothing is behind it (502 to 504, which is also how a server says that it is loading).
 */
export function awayReason(error: unknown): string | undefined {
  if (!(error instanceof ServerError)) return undefined
  const { status, problem } = error
  if (status !== undefined && status >= 502 && status <= 504) return error.message
  return problem === 'connection' && untakenReason(error) !== undefined ? error.message : undefined
}
