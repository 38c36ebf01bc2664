import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AnswerReader, type AnswerTaker } from './answer-reader.ts'

/** One request as it is written. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Made by `headerLines`. */
  readonly headers: string
  readonly body: Buffer | string | null
}

/** Takes an answer and how it ended: one of `onEnd` and `onFailure` is called, once. */
export interface AnswerHandler extends AnswerTaker {
  onEnd(): void
  onFailure(cause: Error): void
}

/** Who keeps a connection. */
export interface ConnectionKeeper {
  /** It has served a request and can serve another. */
  onFree(connection: Connection): void
  /** It is closed; called once. */
  onGone(connection: Connection): void
}

/** A connection that is not there after so many milliseconds does not come. */
const longestConnecting = 10_000
/** Milliseconds for which a connection is kept where its server says nothing. */
const usualKeeping = 4000
/** A connection is given up so much earlier than its server does, in milliseconds. */
const keepingMargin = 1000
const longestKeeping = 600_000

/** All connections of a thread read into this: what was read is taken before the next one reads. */
const readInto = Buffer.allocUnsafeSlow(65_536)

/** A connection to a server, which serves one request at a time. It opens with the first. */
export class Connection implements AnswerTaker {
  /** When it is too old to be used again, by `performance.now()`. */
  keptUntil = 0
  readonly #keeper: ConnectionKeeper
  readonly #host: string
  readonly #socket: Socket
  readonly #reader: AnswerReader
  #handler: AnswerHandler | undefined
  #failure: Error | undefined

  constructor(origin: string, keeper: ConnectionKeeper) {
    this.#keeper = keeper
    this.#host = new URL(origin).host
    this.#reader = new AnswerReader(this)
    this.#socket = openSocket(origin, bytes => this.#read(bytes))
    const timer = setTimeout(() => {
      this.destroy(coded('ETIMEDOUT', `no connection within ${longestConnecting / 1000} s`))
    }, longestConnecting)
    this.#socket.once('connect', () => clearTimeout(timer))
    this.#socket.on('error', cause => {
      this.#failure ??= cause
    })
    // Nobody answers any more behind an end, unless an answer goes on to the end.
    this.#socket.on('end', () => this.#socket.destroy())
    this.#socket.once('close', () => {
      clearTimeout(timer)
      this.#close()
    })
  }

  /** Sends a request over a connection that is free. */
  send({ method, path, headers, body }: HttpRequest, handler: AnswerHandler): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const size = bytes === null ? '' : `content-length: ${bytes.length}\r\n`
    const head = `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\nconnection: keep-alive\r\n`
    this.#handler = handler
    this.#reader.begin()
    const socket = this.#socket
    socket.ref()
    socket.cork()
    socket.write(`${head}${headers}${size}\r\n`, 'latin1')
    if (bytes !== null) socket.write(bytes)
    socket.uncork()
  }

  /** Closes it where it still serves this handler, which hears no more. */
  abandon(handler: AnswerHandler): void {
    if (this.#handler !== handler) return
    this.#handler = undefined
    this.#socket.destroy()
  }

  /** Closes it while nobody uses it. */
  close(): void {
    this.#socket.destroy()
  }

  /** Closes it; whoever waits for an answer is told why. */
  destroy(cause: Error): void {
    this.#failure ??= cause
    this.#socket.destroy()
  }

  onHead(status: number, headers: Parameters<AnswerTaker['onHead']>[1]): void {
    this.#handler?.onHead(status, headers)
  }

  onData(chunk: Buffer): void {
    this.#handler?.onData(chunk)
  }

  #read(bytes: Buffer): void {
    if (this.#socket.destroyed) return
    try {
      this.#reader.take(bytes)
    } catch (cause) {
      this.destroy(cause as Error)
      return
    }
    if (this.#reader.isOver) this.#end()
  }

  #end(): void {
    const handler = this.#handler
    this.#handler = undefined
    if (this.#isReusable()) {
      this.#socket.unref()
      this.#keeper.onFree(this)
    } else this.#socket.destroy()
    handler?.onEnd()
  }

  /** A server that answered before it had read the whole request would read the rest as another. */
  #isReusable(): boolean {
    const { staysOpen, keepAliveSeconds } = this.#reader
    const said = keepAliveSeconds === undefined ? undefined : keepAliveSeconds * 1000
    const keeping = said === undefined ? usualKeeping : said - keepingMargin
    this.keptUntil = performance.now() + Math.min(longestKeeping, keeping)
    const { destroyed, writableLength } = this.#socket
    return staysOpen && keeping > 0 && !destroyed && writableLength === 0
  }

  #close(): void {
    const handler = this.#handler
    this.#handler = undefined
    this.#keeper.onGone(this)
    if (!handler) return
    if (!this.#failure && this.#reader.end()) handler.onEnd()
    else handler.onFailure(this.#failure ?? coded('ECONNRESET', 'the other side hung up'))
  }
}

function coded(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

function openSocket(origin: string, read: (bytes: Buffer) => void): Socket {
  const { protocol, hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  if (protocol === 'https:') {
    const servername = isIP(host) ? {} : { servername: host }
    const options = { host, port: Number(port || 443), ALPNProtocols: ['http/1.1'], ...servername }
    const socket = connectTls(options).setNoDelay(true)
    return socket.on('data', read)
  }
  return connectPlain({
    host,
    port: Number(port || 80),
    noDelay: true,
    onread: {
      buffer: readInto,
      callback(count, buffer) {
        read((buffer as Buffer).subarray(0, count))
        return true
      },
    },
  })
}
