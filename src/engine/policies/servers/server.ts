import { keepSecret } from '../../../base/core/process/secrets.ts'
import { openConnections } from '../transport/connections.ts'
import { type Exchange, HttpExchange } from '../transport/exchange.ts'
import type { ServerThread } from '../transport/thread/thread.ts'
import { type Reading, readAnswer } from './answer-reading.ts'
import type { Generated } from './generated.ts'

/** How to reach a server. */
export interface ServerOptions {
  /** Sent as a bearer token; never part of a message. */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Connections to the server at one time; more requests wait. @default 4096 */
  readonly connections?: number
  /** Seconds a request may take, waiting for a connection included. @default 600 */
  readonly deadlineSeconds?: number
  /** What tells a request's session: another header than that of routers, or `body:` and a field. @default 'X-Session-ID' */
  readonly session?: string
  /** Where requests are sent and answers are read. @default the caller's own thread */
  readonly thread?: ServerThread
}

/** One request to a server. */
export interface ServerRequest {
  readonly path: string
  /** Without a body it is a GET. */
  readonly body?: Buffer | string | undefined
  /** Names and values, one after the other. */
  readonly headers?: readonly string[] | undefined
  /** Overrides the server's deadline. */
  readonly deadlineSeconds?: number | undefined
  /** Takes the body piece by piece if the server answers with an event stream. */
  readonly onEvents?: ((chunk: Buffer) => void) | undefined
}

/** A request whose answer is read where it arrives. */
export interface ReadRequest extends ServerRequest {
  readonly body: Buffer
}

/** An open way to one HTTP server. */
export interface Server extends AsyncDisposable {
  readonly url: string
  start(request: ServerRequest): Exchange
  /** Sends a request whose answer is read where it arrives. */
  startRead(request: ReadRequest, reading: Reading): Exchange<Generated>
}

/** Opens a server by its address, a base that paths are appended to. */
export function openServer(address: string, options: ServerOptions = {}): Server {
  return options.thread ? options.thread.open(address, options) : openHere(address, options)
}

function openHere(address: string, options: ServerOptions): Server {
  const { origin, base, url } = addressOf(address)
  const { connections, deadlineSeconds } = { connections: 4096, deadlineSeconds: 600, ...options }
  const pool = openConnections(origin, connections)
  const common = Object.entries(options.headers ?? {}).flat()
  keepSecret(options.key)
  if (options.key !== undefined) common.push('authorization', `Bearer ${options.key}`)
  const typed = [...common, 'content-type', 'application/json']

  const server: Server = {
    url,
    startRead(request, reading) {
      const { answer, cancel } = server.start(request)
      const { kind, width } = reading
      const asked = { where: `POST ${url}${request.path}`, width, sent: request.body }
      return { answer: answer.then(body => readAnswer(body, kind, asked)), cancel }
    },
    start(request) {
      const { path, body = null, onEvents } = request
      const method = body === null ? 'GET' : 'POST'
      const own = body === null ? common : typed
      const headers = request.headers ? own.concat(request.headers) : own
      const exchange = new HttpExchange({
        where: `${method} ${url}${path}`,
        deadlineSeconds: request.deadlineSeconds ?? deadlineSeconds,
        onEvents,
        key: options.key,
      })
      try {
        pool.dispatch({ path: base + path, method, headers, body }, exchange)
      } catch (cause) {
        exchange.cancel(cause)
      }
      return { answer: exchange.answer, cancel: reason => exchange.cancel(reason) }
    },
    async [Symbol.asyncDispose]() {
      await pool.close()
    },
  }
  return server
}

/** Checks an address and splits it: the origin, the prefix of every path, and both together. */
export function addressOf(address: string): { origin: string; base: string; url: string } {
  if (!URL.canParse(address)) {
    throw new Error(`"${address}" is not a URL. Expected one like http://localhost:30000.`)
  }
  const { protocol, host, username, password, search, hash, origin, pathname } = new URL(address)
  if (protocol !== 'http:' && protocol !== 'https:') {
    const hint = /^[\w.-]+:\d+(?:\/|$)/.test(address) ? ` Did you mean "http://${address}"?` : ''
    throw new Error(`A server's URL must begin with http:// or https://, got "${protocol}".${hint}`)
  }
  if (username || password) {
    throw new Error(`The URL of ${host} carries a name or password. Give the key as an option.`)
  }
  if (search || hash) {
    throw new Error(`The URL of ${host} must end with its path, got "${search}${hash}" after it.`)
  }
  const base = pathname.replace(/(?<!\/)\/+$/, '')
  return { origin, base, url: origin + base }
}
