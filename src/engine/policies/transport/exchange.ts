import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import {
  knownSecrets,
  withoutSecrets,
  withoutSecretsInJson,
} from '../../../base/core/process/secrets.ts'
import { startTimer } from '../../../base/core/process/timer.ts'
import type { FreeingHandler } from './connections.ts'
import { refusal } from './refusal.ts'
import { ServerError } from './server-error.ts'

/** A request under way. */
export interface Exchange<T = Buffer> {
  /** The body, or what was read from it; empty if events were handed on instead. */
  readonly answer: Promise<T>
  /** Closes the connection; `answer` rejects with the reason. */
  cancel(reason: unknown): void
}

/** What an exchange needs to know of its request. */
export interface ExchangeOptions {
  /** Method and address, for messages. */
  readonly where: string
  readonly deadlineSeconds: number
  /** Takes the body piece by piece if the server answers with an event stream. */
  readonly onEvents?: ((chunk: Buffer) => void) | undefined
  /** A secret that error messages must not quote. */
  readonly key?: string | undefined
}

/** No answer of a server may be larger than this. */
export const largestAnswer = 256 * 2 ** 20
/** An error page is only quoted, so no more than its beginning is kept. */
const largestErrorPage = 2 ** 16
const excerptLength = 300
const longestReason = 4096

/**
 * Gathers one answer. Dispatching straight to a handler skips the streams of undici's `request`,
 * which cost more than the rest of a sample.
 */
export class HttpExchange implements Exchange, FreeingHandler {
  readonly answer: Promise<Buffer>
  onFree: (() => void) | undefined
  readonly #options: ExchangeOptions
  readonly #timer: NodeJS.Timeout
  readonly #chunks: Buffer[] = []
  #resolve!: (body: Buffer) => void
  #reject!: (reason: unknown) => void
  #controller: Dispatcher.DispatchController | undefined
  #headers: IncomingHttpHeaders = {}
  #status = 0
  #size = 0
  #hasEvents = false
  #isSettled = false

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const { where, deadlineSeconds } = options
    this.#timer = startTimer(() => {
      const message = `${where} did not answer within ${deadlineSeconds} s`
      this.cancel(new ServerError('deadline', message))
    }, deadlineSeconds * 1000)
  }

  cancel(reason: unknown): void {
    if (!this.#settle()) return
    this.#controller?.abort(reason instanceof Error ? reason : new Error('cancelled'))
    this.#reject(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isSettled) controller.abort(new Error('cancelled'))
  }

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    const type = String(headers['content-type'] ?? '')
    this.#status = status
    this.#headers = headers
    this.#hasEvents =
      this.#options.onEvents !== undefined && status < 300 && type.startsWith('text/event-stream')
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    if (this.#isSettled) return
    try {
      this.#take(chunk)
    } catch (cause) {
      this.cancel(cause)
    }
  }

  onResponseEnd(): void {
    this.onFree?.()
    if (!this.#settle()) return
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
    if (this.#status >= 200 && this.#status < 300) this.#resolve(redacted(body))
    else this.#reject(this.#statusError(body))
  }

  onResponseError(_: unknown, cause: Error): void {
    this.onFree?.()
    if (!this.#settle()) return
    const message = `${this.#options.where} failed: ${describeBreak(cause)}`
    this.#reject(new ServerError('connection', message, { cause }))
  }

  #take(chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size > largestAnswer) {
      const message = `${this.#options.where} answered more than ${largestAnswer} bytes`
      throw new ServerError('answer', message)
    }
    if (this.#hasEvents) this.#options.onEvents?.(chunk)
    else if (this.#status < 300 || this.#size < largestErrorPage) this.#chunks.push(chunk)
  }

  #settle(): boolean {
    if (this.#isSettled) return false
    this.#isSettled = true
    clearTimeout(this.#timer)
    return true
  }

  #statusError(body: Buffer): Error {
    const { where, key } = this.#options
    const said = excerptOf(body, key)
    const message = `${where} answered ${this.#status}${said ? `: ${said}` : ', with no body'}`
    const seconds = retryAfter(this.#headers)
    return refusal(message, body.toString('utf8', 0, longestReason), {
      status: this.#status,
      ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }),
    })
  }
}

/** An answer with secrets removed that a server may have echoed. */
function redacted(body: Buffer): Buffer {
  if (!knownSecrets().some(secret => body.includes(secret, 0, 'latin1'))) return body
  return Buffer.from(withoutSecretsInJson(body.toString('latin1')), 'latin1')
}

/** The beginning of a body on one line, without the key that a server may have echoed. */
export function excerptOf(body: Buffer, key?: string): string {
  const text = body.toString('utf8', 0, longestReason)
  const shown = key ? text.replaceAll(key, '[key]') : text
  const line = withoutSecrets(shown).replace(/\s+/g, ' ').trim()
  return line.length > excerptLength ? `${line.slice(0, excerptLength)}…` : line
}

function describeBreak(cause: Error): string {
  const { code } = cause as { readonly code?: unknown }
  // Node reports several refused addresses as one error with an empty message.
  const message = cause.message || (cause instanceof AggregateError && cause.errors.join(', '))
  if (!message) return String(code ?? 'no message')
  return typeof code !== 'string' || message.includes(code) ? message : `${message} (${code})`
}

/** Seconds that Retry-After asks for; a date is read against the server's own clock. */
function retryAfter(headers: IncomingHttpHeaders): number | undefined {
  const text = headers['retry-after']
  if (text === undefined) return undefined
  const seconds = Number(text)
  if (Number.isFinite(seconds)) return Math.max(0, seconds)
  const wait = (Date.parse(text) - Date.parse(String(headers.date))) / 1000
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined
}
