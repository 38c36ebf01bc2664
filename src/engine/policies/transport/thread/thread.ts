import { Worker } from 'node:worker_threads'
import { builtFile } from '../../../../base/core/process/package-folder.ts'
import { Line, type Waiting } from '../../../../base/core/threads/line.ts'
import { type Reading, unpackAnswer } from '../../servers/answer-reading.ts'
import type { Generated } from '../../servers/generated.ts'
import {
  addressOf,
  type Server,
  type ServerOptions,
  type ServerRequest,
} from '../../servers/server.ts'
import type { Exchange } from '../exchange.ts'
import { ServerError } from '../server-error.ts'
import {
  type AnswerNews,
  type FromThread,
  fromPlain,
  type PlainServerOptions,
  type StartOrder,
  type ToThread,
} from './messages.ts'

/** A thread that sends requests and reads answers, so that the caller's own is free for the rest. */
export interface ServerThread {
  /** Opens a server whose exchanges run in the thread; the last one to be closed ends it. */
  open(address: string, options: ServerOptions): Server
}

/** The file that the thread runs: one bundle, since workers cannot load TypeScript. */
const workerFile = builtFile('engine/policies/transport/thread/worker.js')

/**
 * Makes a thread; it starts with the first request. A thread that dies is replaced: its requests fail
 * like broken connections, and the next request starts a new thread.
 */
export function openServerThread(
  startWorker: () => Worker = () => new Worker(workerFile, { execArgv: [], name: 'servers' }),
): ServerThread {
  const opened = new Map<number, ToThread>()
  let line: ThreadLine | undefined
  let count = 0

  function currentLine(): ThreadLine {
    if (line && !line.failure) return line
    line = new ThreadLine(startWorker())
    for (const order of opened.values()) line.send(order)
    return line
  }

  function start<T>(asked: Asked, url: string): Exchange<T> {
    if (opened.has(asked.server)) return currentLine().start(asked)
    const answer = Promise.reject(new Error(`The connections to ${url} were closed.`))
    return { answer, cancel() {} }
  }

  return {
    open(address, given) {
      const { url } = addressOf(address)
      const server = count++
      const order = { kind: 'open', server, address, options: plainOptions(given) } as const
      opened.set(server, order)
      if (!line?.failure) line?.send(order)
      return {
        url,
        start: request => start<Buffer>({ server, request }, url),
        startRead: (request, reading) => start({ server, request, reading }, url),
        async [Symbol.asyncDispose]() {
          opened.delete(server)
          if (opened.size > 0) return
          await line?.close()
          line = undefined
        },
      }
    },
  }
}

/** Only the server's own options; those of policies contain functions, which cannot be sent. */
function plainOptions(given: ServerOptions): PlainServerOptions {
  const { key, headers, connections, deadlineSeconds } = given
  return {
    ...(key !== undefined && { key }),
    ...(headers !== undefined && { headers }),
    ...(connections !== undefined && { connections }),
    ...(deadlineSeconds !== undefined && { deadlineSeconds }),
  }
}

interface Asked {
  readonly server: number
  readonly request: ServerRequest
  readonly reading?: Reading
}

/** A request that waits for its answer. */
interface Pending extends Waiting {
  readonly onEvents: ((chunk: Buffer) => void) | undefined
  /** Why nobody wants the answer any more. */
  cancelled?: { readonly reason: unknown }
}

/** The line to the thread: exchanges by number. */
class ThreadLine {
  readonly #line: Line<ToThread, FromThread, Pending>

  constructor(worker: Worker) {
    this.#line = new Line(worker, {
      take: news => this.#take(news),
      failure(cause) {
        const problem = cause ? `failed: ${cause.message}` : 'was closed'
        return new ServerError('connection', `the thread that talks to servers ${problem}`)
      },
    })
    worker.unref()
  }

  get failure(): Error | undefined {
    return this.#line.failure
  }

  send(order: ToThread): void {
    this.#line.send(order)
  }

  start<T>(asked: Asked): Exchange<T> {
    const { onEvents } = asked.request
    let id = -1
    const answer = new Promise<T>((resolve, reject) => {
      id = this.#line.open({ resolve, reject, onEvents })
      this.send(toOrder(id, asked))
    })
    return { answer, cancel: reason => this.#cancel(id, reason) }
  }

  async close(): Promise<void> {
    await this.#line.worker.terminate()
  }

  /** A stream ends when the thread has closed it: until then it may hand on what had arrived. */
  #cancel(id: number, reason: unknown): void {
    const pending = this.#line.question(id)
    if (!pending || pending.cancelled) return
    this.send({ kind: 'cancel', id })
    if (pending.onEvents) pending.cancelled = { reason }
    else this.#line.settle(id)?.reject(reason)
  }

  #take(news: FromThread): void {
    if ('kind' in news && news.kind === 'events') {
      this.#pass(news.id, toBuffer(news.chunk))
      return
    }
    const pending = this.#line.settle('kind' in news ? news.id : news[0])
    if (pending?.cancelled) pending.reject(pending.cancelled.reason)
    else if ('kind' in news) pending?.reject(fromPlain(news.failure))
    else pending?.resolve(answerOf(news) as never)
  }

  /** If the receiver of events throws, the exchange ends. */
  #pass(id: number, chunk: Buffer): void {
    try {
      this.#line.question(id)?.onEvents?.(chunk)
    } catch (cause) {
      this.#cancel(id, cause)
    }
  }
}

function toOrder(id: number, { server, request, reading }: Asked): StartOrder {
  const { path, headers, deadlineSeconds, body, onEvents } = request
  const isShared = typeof body === 'object' && body.buffer instanceof SharedArrayBuffer
  const from = isShared ? body.byteOffset : 0
  const to = isShared ? from + body.byteLength : 0
  const memory = isShared ? body.buffer : body
  const streams = onEvents !== undefined
  const { kind, width = 0 } = reading ?? {}
  return [id, server, path, headers, deadlineSeconds, memory, from, to, streams, kind, width]
}

function answerOf([, answer]: AnswerNews): Buffer | Generated {
  return answer instanceof Uint8Array ? toBuffer(answer) : unpackAnswer(answer)
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
}
