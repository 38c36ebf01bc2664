import { Worker } from 'node:worker_threads'
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
import { openOutbox } from './outbox.ts'

/** A thread that sends requests and reads answers, so that the caller's own is free for the rest. */
export interface ServerThread {
  /** Opens a server whose exchanges run in the thread; the last one to be closed ends it. */
  open(address: string, options: ServerOptions): Server
}

/** The file that the thread runs: one bundle, since workers cannot load TypeScript. */
const workerFile = new URL('./built/worker.js', import.meta.url)

/**
 * Makes a thread; it starts with the first request. One that dies is replaced: what was under way
 * has failed as broken connections do, and what is asked for next goes on.
 */
export function openServerThread(
  startWorker: () => Worker = () => new Worker(workerFile, { execArgv: [], name: 'servers' }),
): ServerThread {
  const opened = new Map<number, ToThread>()
  let line: Line | undefined
  let count = 0

  function currentLine(): Line {
    if (line && !line.failure) return line
    line = new Line(startWorker())
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

/** What of the options is the server's; those of policies hold functions, which cannot be sent. */
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

/** One who waits for an answer. */
interface Pending {
  readonly resolve: (value: never) => void
  readonly reject: (reason: unknown) => void
  readonly onEvents: ((chunk: Buffer) => void) | undefined
  /** Why nobody wants the answer any more. */
  cancelled?: { readonly reason: unknown }
}

/** The line to the thread: exchanges by number. The program stays alive while one is under way. */
class Line {
  readonly send: (order: ToThread) => void
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending>()
  #next = 0
  /** Why the thread is gone. */
  failure: Error | undefined

  constructor(worker: Worker) {
    this.#worker = worker
    this.send = openOutbox(orders => worker.postMessage(orders))
    worker.unref()
    worker.on('message', (news: readonly FromThread[]) => {
      for (const item of news) this.#take(item)
    })
    worker.on('error', cause => this.#fail(`failed: ${cause.message}`))
    worker.on('exit', () => this.#fail('was closed'))
  }

  start<T>(asked: Asked): Exchange<T> {
    const { onEvents } = asked.request
    const id = this.#next++
    const answer = new Promise<T>((resolve, reject) => {
      if (this.#pending.size === 0) this.#worker.ref()
      this.#pending.set(id, { resolve, reject, onEvents })
      this.send(toOrder(id, asked))
    })
    return { answer, cancel: reason => this.#cancel(id, reason) }
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }

  /** A stream ends when the thread has closed it: until then it may hand on what had arrived. */
  #cancel(id: number, reason: unknown): void {
    const pending = this.#pending.get(id)
    if (!pending || pending.cancelled) return
    this.send({ kind: 'cancel', id })
    if (pending.onEvents) pending.cancelled = { reason }
    else this.#settle(id)?.reject(reason)
  }

  #take(news: FromThread): void {
    if ('kind' in news && news.kind === 'events') {
      this.#pass(news.id, toBuffer(news.chunk))
      return
    }
    const pending = this.#settle('kind' in news ? news.id : news[0])
    if (pending?.cancelled) pending.reject(pending.cancelled.reason)
    else if ('kind' in news) pending?.reject(fromPlain(news.failure))
    else pending?.resolve(answerOf(news) as never)
  }

  /** Whoever takes events may throw at what they say: that ends the exchange. */
  #pass(id: number, chunk: Buffer): void {
    try {
      this.#pending.get(id)?.onEvents?.(chunk)
    } catch (cause) {
      this.#cancel(id, cause)
    }
  }

  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (this.#pending.size === 0) this.#worker.unref()
    return pending
  }

  #fail(problem: string): void {
    this.failure ??= new ServerError('connection', `the thread that talks to servers ${problem}`)
    for (const { reject } of this.#pending.values()) reject(this.failure)
    this.#pending.clear()
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
