import type { Call } from '../../base/core/call.ts'
import { onAbort } from '../../base/core/call.ts'
import { describeCause, Failure } from '../../base/core/failure.ts'
import { absences, untakenReason } from '../../base/core/process/absences.ts'
import { parseBounded } from '../../base/core/process/bounded.ts'
import { DeadlineError, withDeadline } from '../../base/core/process/deadline.ts'
import { connectSocket } from './sockets/handshake.ts'
import type { SocketEnd, TextSocket } from './sockets/text-socket.ts'

/** One socket of a server: requests and answers in lock-step, as the protocol has no ids for them. */
export interface Session {
  /** Sends a message and gives the answer; later calls wait for earlier ones. */
  ask(message: object, call: Call): Promise<unknown>
  readonly isOpen: boolean
  /** Closes it, and waits until the server has closed its side. */
  close(farewell?: object): Promise<void>
}

/** How sessions are opened. */
export interface SessionOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Seconds until an answer has to be here. */
  readonly seconds: number
  /** Bytes that one answer may have. */
  readonly bytes: number
}

/** A failure of the server, not of the policy. */
export function brokenWorld(text: string, cause?: unknown): Failure {
  return new Failure('environment', { cause: new Error(text, { cause }) })
}

/** Opens a socket of a server. */
export async function openSession(options: SessionOptions, call: Call): Promise<Session> {
  const { url, headers, seconds, bytes } = options
  try {
    const connect = () =>
      withDeadline(seconds, call, stopping =>
        connectSocket(url, { signal: stopping(), headers, bytes }),
      )
    const awaited = { server: url, isAway: untakenReason, ask: connect, signal: call.signal }
    const socket = await absences.ask(awaited)
    return new LockStep(socket, options)
  } catch (cause) {
    call.signal.throwIfAborted()
    throw brokenWorld(`${url} cannot be reached: ${describeCause(cause)}`, cause)
  }
}

interface Waiting {
  answer(text: string): void
  fail(cause: Failure): void
}

class LockStep implements Session {
  readonly #socket: TextSocket
  readonly #options: SessionOptions
  readonly #ended: Promise<void>
  #waiting: Waiting | undefined
  /** A message that came unasked: a refusal as the socket opened, or a server out of step. */
  #early: string | undefined
  #broken: Failure | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(socket: TextSocket, options: SessionOptions) {
    this.#socket = socket
    this.#options = options
    this.#ended = new Promise(resolve => {
      socket.listen({
        text: text => this.#take(text),
        ended: end => {
          this.#end(end)
          resolve()
        },
      })
    })
  }

  get isOpen(): boolean {
    return this.#socket.isOpen && !this.#broken
  }

  ask(message: object, call: Call): Promise<unknown> {
    const mine = this.#last.then(() => this.#exchange(message, call))
    this.#last = mine.catch(() => undefined)
    return mine
  }

  async close(farewell?: object): Promise<void> {
    if (farewell && this.isOpen && !this.#waiting) this.#socket.send(JSON.stringify(farewell))
    else this.#socket.close()
    setTimeout(() => this.#socket.close(), 1000).unref()
    await this.#ended
  }

  async #exchange(message: object, call: Call): Promise<unknown> {
    call.signal.throwIfAborted()
    const { url, seconds } = this.#options
    try {
      return parse(await withDeadline(seconds, call, () => this.#answerTo(message, call)), url)
    } catch (cause) {
      // After any error a late answer could be taken for that of another request, so the session ends.
      const failure =
        cause instanceof DeadlineError
          ? brokenWorld(`${url} gave no answer within ${seconds} seconds`, cause)
          : cause
      this.#break(failure instanceof Failure ? failure : brokenWorld(describeCause(cause), cause))
      throw failure
    }
  }

  #answerTo(message: object, { signal }: Call): Promise<string> {
    return new Promise((resolve, reject) => {
      const early = this.#early
      if (early !== undefined) {
        this.#early = undefined
        return resolve(early)
      }
      if (this.#broken) return reject(this.#broken)
      const stopListening = onAbort(signal, () => reject(signal.reason))
      const settle = (): void => {
        this.#waiting = undefined
        stopListening()
      }
      this.#waiting = {
        answer(text) {
          settle()
          resolve(text)
        },
        fail(cause) {
          settle()
          reject(cause)
        },
      }
      this.#socket.send(JSON.stringify(message))
    })
  }

  #take(text: string): void {
    const { url } = this.#options
    if (this.#waiting) this.#waiting.answer(text)
    else if (this.#early === undefined && isRefusal(text)) this.#early = text
    else this.#break(brokenWorld(`${url} answered out of turn: ${text.slice(0, 200)}`))
  }

  #break(cause: Failure): void {
    this.#broken ??= cause
    this.#waiting?.fail(cause)
    this.#socket.destroy()
  }

  #end({ code, reason }: SocketEnd): void {
    const why = reason === '' ? '' : `, ${reason}`
    this.#broken ??= brokenWorld(`${this.#options.url} closed the world’s socket (${code}${why})`)
    this.#waiting?.fail(this.#broken)
  }
}

function isRefusal(text: string): boolean {
  return text.length < 10_000 && /"error"/.test(text)
}

function parse(text: string, url: string): unknown {
  try {
    return parseBounded(text)
  } catch (cause) {
    throw brokenWorld(`${url} answered what is not JSON: ${text.slice(0, 200)}`, cause)
  }
}
