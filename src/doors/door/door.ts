import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keepSecret } from '../../base/core/process/secrets.ts'
import { bareHost, isLoopback } from './address.ts'
import { makeBodyMemory } from './body-memory.ts'
import { Intake } from './intake.ts'
import { RefusedRequest } from './refused-request.ts'
import { Reply } from './reply.ts'
import {
  type BodyOptions,
  type DoorRequest,
  IncomingRequest,
  invitationOf,
  type RequestHead,
} from './request.ts'
import { type ParamsOf, type PathPattern, Router } from './router.ts'
import {
  answerPreflight,
  checkContentType,
  checkPlace,
  checkQuery,
  checkToken,
  type DoorOptions,
} from './rules.ts'
import { Visitors } from './visitors.ts'

/** How much a request may bring, and how long it may take to do so. */
export interface DoorLimits {
  /** @default 64 MiB */
  readonly bodyBytes?: number
  /** Seconds until a request has to be here whole. @default 60 */
  readonly requestSeconds?: number
  /** Connections at one time; of more, strangers are closed. @default 4096 */
  readonly connections?: number
}

/** What a door answers with besides the results of its routes. */
export interface DoorWords {
  /** Headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>
  /** Where to look instead, for a path that is not here. */
  readonly elsewhere?: string
  /** Tells what was wrong with a request. @default `{"error": …}` with its status */
  readonly tell?: (cause: unknown, request: RequestHead, reply: Reply) => void
}

/** Answers a request: what it returns is sent, unless it has sent something itself. */
export type Handler<Params> = (request: DoorRequest<Params>, reply: Reply) => unknown

/** Who may ask for a route, and what it does. */
export interface RouteOptions<Params = object> {
  /**
   * Who may ask, instead of by the door's token: throws for others, from the head alone. An answer that
   * `everybody` may have, such as a health check, must contain nothing private.
   */
  readonly admit?: (request: DoorRequest<Params>) => void
  /** A POST that changes nothing, and so may come without a content type. */
  readonly changesNothing?: boolean
}

/** Lets everybody in who keeps to the rules of the door. */
export function everybody(): void {}

interface Route extends RouteOptions {
  readonly handler: Handler<object>
}

type Added<Pattern extends PathPattern> =
  | readonly [Handler<ParamsOf<Pattern>>]
  | readonly [RouteOptions<ParamsOf<Pattern>>, Handler<ParamsOf<Pattern>>]

/** Seconds that a connection is kept for the next request. */
const keepAliveSeconds = 72

/** How many bodies of the greatest length may be held while they are read: of all, and of one peer. */
const readAtOnce = { all: 8, perPeer: 4 }

/**
 * An HTTP server that holds every request to the same rules and limits: a Host that is its own, an
 * Origin that is its own or allowed, the token if there is one, a content type that no HTML form can
 * send if something may change, and query keys once each. All of it is asked of the head; a body is
 * read when the route asks for it. Add routes, then `listen`.
 */
export class Door {
  readonly server: Server
  readonly #options: DoorOptions & DoorWords
  readonly #router = new Router<Route>()
  readonly #bodies: BodyOptions
  readonly #visitors: Visitors

  constructor(options: DoorOptions & DoorLimits & DoorWords) {
    const {
      host,
      token,
      bodyBytes = 64 * 2 ** 20,
      requestSeconds = 60,
      connections = 4096,
    } = options
    if (token === undefined && !isLoopback(host)) {
      throw new Error(`listening on ${host} needs a token: others could use the service`)
    }
    keepSecret(token)
    this.#options = options
    const { all, perPeer } = readAtOnce
    this.#bodies = {
      limit: bodyBytes,
      memory: makeBodyMemory(),
      intake: new Intake({ all: all * bodyBytes, perPeer: perPeer * bodyBytes }),
    }
    this.server = createServer({
      maxHeaderSize: 16 * 1024,
      headersTimeout: Math.min(requestSeconds, 20) * 1000,
      connectionsCheckingInterval: Math.min(requestSeconds, 5) * 1000,
      requestTimeout: requestSeconds * 1000,
      keepAliveTimeout: keepAliveSeconds * 1000,
      joinDuplicateHeaders: true,
    })
    this.#visitors = new Visitors(connections)
    this.server.on('connection', connection => this.#visitors.take(connection))
    this.server.on('request', (request, response) => void this.#take(request, response))
    this.server.on('checkContinue', (request, response) => {
      void this.#take(request, response, invitationOf(response))
    })
  }

  get<const Pattern extends PathPattern>(pattern: Pattern, ...added: Added<Pattern>): void {
    this.on(['GET'], pattern, ...added)
  }

  post<const Pattern extends PathPattern>(pattern: Pattern, ...added: Added<Pattern>): void {
    this.on(['POST'], pattern, ...added)
  }

  put<const Pattern extends PathPattern>(pattern: Pattern, ...added: Added<Pattern>): void {
    this.on(['PUT'], pattern, ...added)
  }

  delete<const Pattern extends PathPattern>(pattern: Pattern, ...added: Added<Pattern>): void {
    this.on(['DELETE'], pattern, ...added)
  }

  /** Adds a route of several methods. */
  on<const Pattern extends PathPattern>(
    methods: readonly string[],
    pattern: Pattern,
    ...added: Added<Pattern>
  ): void {
    const [options, handler] = added.length === 1 ? [{}, added[0]] : added
    // The router reads the parameters by this very pattern.
    this.#router.add(methods, pattern, { ...options, handler } as Route)
  }

  /** Listens at the door's host and gives its address; 0 takes any free port. */
  async listen(port: number): Promise<string> {
    const host = bareHost(this.#options.host)
    this.server.listen(port, host === 'localhost' ? '127.0.0.1' : host)
    await once(this.server, 'listening')
    return urlOf(this.server.address() as AddressInfo)
  }

  /** Takes no more requests and closes all connections. */
  async close(): Promise<void> {
    if (!this.server.listening) return
    const closed = once(this.server, 'close')
    this.server.close()
    this.server.closeAllConnections()
    await closed
  }

  async #take(raw: IncomingMessage, response: ServerResponse, invite?: () => void): Promise<void> {
    const request = new IncomingRequest(raw, this.#bodies, invite)
    const reply = new Reply(response)
    try {
      const route = this.#enter(request, reply)
      if (route) reply.give(await route.handler(request, reply))
    } catch (cause) {
      // Whoever sent a body that is refused may be sending on.
      if (request.isBodyLeft) reply.header('connection', 'close')
      if (comesAgain.has(statusOf(cause))) reply.header('retry-after', '1')
      if (!response.headersSent) (this.#options.tell ?? tellPlainly)(cause, request, reply)
      else if (!response.writableEnded) response.destroy()
    }
  }

  /** The route that is asked for, if the request may ask for it; nothing if it is answered already. */
  #enter(request: IncomingRequest, reply: Reply): Route | undefined {
    const options = this.#options
    for (const [name, value] of Object.entries(options.headers ?? {})) reply.header(name, value)
    checkPlace(request, reply, options)
    if (answerPreflight(request, reply, options)) return undefined
    const found = this.#router.find(request.method, request.path)
    if (found) request.params = found.params
    if (found?.route.admit) found.route.admit(request)
    else checkToken(request, reply, options)
    if (found?.route.admit !== everybody) this.#visitors.letIn(reply.raw.socket!)
    checkContentType(request, found?.route.changesNothing)
    checkQuery(request)
    if (found) return found.route
    const { method, url } = request
    const rest = options.elsewhere === undefined ? '' : `: ${options.elsewhere}`
    throw new RefusedRequest(404, `no ${method} ${url.slice(0, 200)} here${rest}`)
  }
}

/** Statuses after which a client should try the same again. */
const comesAgain: ReadonlySet<number> = new Set([429, 503])

/** The status that an error asks for. */
export function statusOf(cause: unknown): number {
  const { statusCode = 500 } = cause as { readonly statusCode?: number }
  return statusCode
}

function tellPlainly(cause: unknown, _request: RequestHead, reply: Reply): void {
  reply.status = statusOf(cause)
  reply.give({ error: (cause as Error).message })
}

/** The address as a URL that this machine can ask. */
function urlOf({ address, port, family }: AddressInfo): string {
  const own = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address] ?? address
  return family === 'IPv6' ? `http://[${own}]:${port}` : `http://${own}:${port}`
}
