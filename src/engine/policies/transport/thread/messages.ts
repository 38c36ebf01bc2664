import { PromptTooLong } from '../../../../base/core/policy.ts'
import type { PackedAnswer, Reading } from '../../servers/answer-reading.ts'
import type { ServerOptions } from '../../servers/server.ts'
import { ServerError, type ServerProblem } from '../server-error.ts'

/** The options of a server that can be sent to another thread. */
export type PlainServerOptions = Omit<ServerOptions, 'thread'>

/** Messages to the thread; the sender chooses the numbers `server` and `id`. */
export type ToThread =
  | {
      readonly kind: 'open'
      readonly server: number
      readonly address: string
      readonly options: PlainServerOptions
    }
  | { readonly kind: 'cancel'; readonly id: number }
  | StartOrder

/** A request. The most frequent message, so a list: an object would send its field names each time. */
export type StartOrder = readonly [
  id: number,
  server: number,
  path: string,
  headers: readonly string[] | undefined,
  deadlineSeconds: number | undefined,
  /** Shared memory is not copied; only its bytes in [from, to) are the body. */
  body: string | Uint8Array | ArrayBufferLike | undefined,
  from: number,
  to: number,
  /** Whether the pieces of an event stream are wanted one by one. */
  streams: boolean,
  reading: Reading['kind'] | undefined,
  width: number,
]

/** Messages from the thread, each about one exchange. */
export type FromThread =
  | { readonly kind: 'events'; readonly id: number; readonly chunk: Uint8Array }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: PlainFailure }
  | AnswerNews

/** An answer, as it came or packed. */
export type AnswerNews = readonly [id: number, answer: Uint8Array | PackedAnswer]

/** An error as plain data: class and fields of an error are lost between threads. */
export interface PlainFailure {
  readonly message: string
  readonly problem?: ServerProblem
  readonly status?: number | undefined
  readonly retryAfterSeconds?: number | undefined
  /** The code of a system error behind it. */
  readonly code?: string
  /** Whether the prompt did not fit the server's context. */
  readonly isTooLong?: boolean
}

/** An error, made plain. */
export function toPlain(error: unknown): PlainFailure {
  if (error instanceof PromptTooLong) return { message: error.message, isTooLong: true }
  if (!(error instanceof ServerError)) return { message: String(error) }
  const { message, problem, status, retryAfterSeconds, cause } = error
  const code = (cause as { readonly code?: unknown } | undefined)?.code
  return { message, problem, status, retryAfterSeconds, ...(typeof code === 'string' && { code }) }
}

/** The error that was made plain. */
export function fromPlain({ message, problem, code, ...details }: PlainFailure): Error {
  if (details.isTooLong) return new PromptTooLong(message)
  if (!problem) return new Error(message)
  const { status, retryAfterSeconds } = details
  return new ServerError(problem, message, {
    ...(status !== undefined && { status }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(code !== undefined && { cause: Object.assign(new Error(message), { code }) }),
  })
}
