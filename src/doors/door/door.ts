import { createServer, type IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { keepSecret, withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import { hostNameOf, isLoopback, isOwnHost } from './address.ts'
import { type DirectHead, type DirectRoutes, openDirect } from './direct-routes.ts'
import { mediaTypeOf, RefusedRequest, readJsonBodies } from './json-body.ts'
import { bearerOf, isSameSecret } from './token.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered without a token, such as a health check; its answer must contain nothing private. */
    readonly needsNoToken?: boolean
    /** A POST that changes nothing, and so may come without a content type. */
    readonly changesNothing?: boolean
  }
}

/** Where a door is and who may enter. */
export interface DoorOptions {
  /** The address it will listen on. */
  readonly host: string
  /** The token that every request needs; required if the door listens beyond loopback. */
  readonly token?: string
  /** Where a request carries its token. @default `Authorization: Bearer …` */
  readonly tokenOf?: (request: FastifyRequest) => string | undefined
  /** Host names besides its own address that requests may be sent to. */
  readonly allowedHosts?: readonly string[]
  /** Pages besides its own, as `https://name:port`, that may call it from a browser. */
  readonly allowedOrigins?: readonly string[]
  /**
   * Whether links on pages of others may lead here. Only for doors that are pages: where a GET takes
   * something away, such as the groups of a trainer, a link must not do so. @default false
   */
  readonly opensByLink?: boolean
}

/** How much a request may bring, and how long it may take to do so. */
export interface DoorLimits {
  /** @default 64 MiB */
  readonly bodyBytes?: number
  /** Seconds until a request has to be here whole. @default 60 */
  readonly requestSeconds?: number
  /** Connections at one time. @default 4096 */
  readonly connections?: number
}

/** What is asked so often that it is answered beside the router. */
export interface DoorRoutes {
  /** They find out themselves who may use them: the door asks for no token there. @default none */
  readonly direct?: DirectRoutes
}

/**
 * Makes an HTTP server that checks every request by the same rules (see `guardDoor`) and limits.
 * Add routes, then `listen`.
 */
export function openDoor(options: DoorOptions & DoorLimits & DoorRoutes): FastifyInstance {
  const { bodyBytes = 64 * 1024 * 1024, requestSeconds = 60, connections = 4096 } = options
  const { direct } = options
  const tryDirect =
    direct && openDirect(direct, { bodyBytes, enter: (...given) => enterDirect(...given, options) })
  const http = {
    maxHeaderSize: 16 * 1024,
    headersTimeout: Math.min(requestSeconds, 20) * 1000,
    connectionsCheckingInterval: Math.min(requestSeconds, 5) * 1000,
    requestTimeout: requestSeconds * 1000,
    keepAliveTimeout: keepAliveSeconds * 1000,
  }
  // Loaded with the first door: most programs that load this module never open one.
  const { fastify } = createRequire(import.meta.url)('fastify') as typeof import('fastify')
  const server = fastify({
    bodyLimit: bodyBytes,
    forceCloseConnections: true,
    serverFactory: route =>
      createServer(http, (request, response) => {
        if (!tryDirect?.(request, response)) route(request, response)
      }),
  })
  server.server.maxConnections = connections
  guardDoor(server, options)
  return server
}

/** Seconds that a connection is kept for the next request. */
const keepAliveSeconds = 72

/**
 * Holds every request to the rules of a door: a Host that is its own, an Origin that is its own or
 * allowed, the token where there is one, a content type that no HTML form can send where something
 * may change, query keys once each, and bodies of bounded depth. Throws where the door would be open
 * to other machines without a token.
 */
export function guardDoor(server: FastifyInstance, options: DoorOptions): void {
  const { host, token } = options
  if (token === undefined && !isLoopback(host)) {
    throw new Error(`listening on ${host} needs a token: others could use the service`)
  }
  keepSecret(token)
  readJsonBodies(server)
  // Synchronous hooks take a callback: a promise per request would cost time.
  server.addHook('onSend', (_request, _reply, payload, done) =>
    done(null, typeof payload === 'string' ? withoutSecretsInJson(payload) : payload),
  )
  server.addHook('onRequest', (request, reply, done) => {
    try {
      reply.header('x-content-type-options', 'nosniff')
      reply.header('cross-origin-resource-policy', 'same-origin')
      checkHost(request, options)
      checkOrigin(request, options)
      allowOrigin(request, reply, options)
      if (answerPreflight(request, reply, options)) return
      checkToken(request, reply, options)
      checkContentType(request, request.routeOptions.config.changesNothing)
      checkQuery(request)
    } catch (cause) {
      done(cause as Error)
      return
    }
    done()
  })
}

/** Holds a request beside the router to the same rules. */
function enterDirect(head: DirectHead, reply: HeaderTaker, options: DoorOptions): void {
  reply.header('x-content-type-options', 'nosniff')
  checkHost(head, options)
  checkOrigin(head, options)
  if (!allowOrigin(head, reply, options)) {
    reply.header('cross-origin-resource-policy', 'same-origin')
  }
  checkContentType(head, true)
  checkQuery(head)
}

/** Where the headers of an answer are written. */
interface HeaderTaker {
  header(name: string, value: string): unknown
}

/** The parts of a request that the rules read. */
type Entering = Pick<IncomingMessage, 'headers' | 'method'>

/** Why a WebSocket request is refused, by the same rules; undefined if it may enter. */
export function refuseEntry(request: Entering, options: DoorOptions): RefusedRequest | undefined {
  try {
    checkHost(request, options)
    checkOrigin(request, options)
    const given = bearerOf(request.headers)
    if (options.token !== undefined && !(given && isSameSecret(given, options.token))) throw noToken
    return undefined
  } catch (cause) {
    if (cause instanceof RefusedRequest) return cause
    throw cause
  }
}

const noToken = new RefusedRequest(401, 'send the token of the service as Authorization: Bearer …')

function checkHost({ headers }: Entering, { host, allowedHosts = [] }: DoorOptions): void {
  const name = hostNameOf(headers.host)
  if (name !== undefined && isOwnHost(name, { host, allowedHosts })) return
  const quoted = JSON.stringify(headers.host?.slice(0, 200) ?? '')
  throw new RefusedRequest(421, `this service does not answer for the host ${quoted}`)
}

/** Browsers say which page sent a request. Foreign pages are refused, except for links if the door allows them. */
function checkOrigin(
  request: Entering,
  { allowedOrigins = [], opensByLink = false }: DoorOptions,
): void {
  const { origin, host } = request.headers
  const from = request.headers['sec-fetch-site']
  if (origin !== undefined) {
    const isOwn = origin === `http://${host}` || origin === `https://${host}`
    if (isOwn || allowedOrigins.includes(origin)) return
    const quoted = JSON.stringify(origin.slice(0, 200))
    throw new RefusedRequest(403, `pages of ${quoted} may not use this service`)
  }
  const isForeign = from === 'cross-site' || from === 'same-site'
  const isLink = request.method === 'GET' && request.headers['sec-fetch-mode'] === 'navigate'
  if (isForeign && !(isLink && opensByLink))
    throw new RefusedRequest(403, 'pages of others may not use this service')
}

/** Tells a browser that an allowed page may read the answer; whether it came from one. */
function allowOrigin(
  { headers: { origin } }: Entering,
  reply: HeaderTaker,
  { allowedOrigins = [] }: DoorOptions,
): boolean {
  if (origin === undefined || !allowedOrigins.includes(origin)) return false
  reply.header('access-control-allow-origin', origin)
  reply.header('vary', 'origin')
  reply.header('cross-origin-resource-policy', 'cross-origin')
  return true
}

/** Answers what a browser asks before it lets an allowed page send a request. */
function answerPreflight(
  { method, headers: { origin } }: FastifyRequest,
  reply: FastifyReply,
  { allowedOrigins = [] }: DoorOptions,
): boolean {
  if (method !== 'OPTIONS' || origin === undefined || !allowedOrigins.includes(origin)) return false
  reply.header('access-control-allow-methods', 'GET, POST, PUT, DELETE')
  reply.header('access-control-allow-headers', 'authorization, content-type, last-event-id')
  void reply.code(204).send()
  return true
}

function checkToken(request: FastifyRequest, reply: FastifyReply, options: DoorOptions): void {
  const { token, tokenOf = ({ headers }) => bearerOf(headers) } = options
  if (token === undefined || request.routeOptions.config.needsNoToken) return
  const given = tokenOf(request)
  if (given !== undefined && isSameSecret(given, token)) return
  reply.header('www-authenticate', 'Bearer')
  throw noToken
}

const forms = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']

/** A form on any page can POST to any address, but only with one of three content types or none. */
function checkContentType({ method, headers }: Entering, changesNothing = false): void {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return
  const type = mediaTypeOf(headers)
  if (type !== undefined && type !== '' && !forms.includes(type)) return
  // No form sends other methods than POST, so those may come without a body and its type.
  if (type === undefined && (method !== 'POST' || changesNothing)) return
  const got = type === undefined ? 'no content type' : type
  throw new RefusedRequest(415, `send Content-Type: application/json, not ${got}`)
}

function checkQuery({ query }: { readonly query: unknown }): void {
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    if (typeof value === 'string') continue
    throw new RefusedRequest(400, `${JSON.stringify(name.slice(0, 100))} is given more than once`)
  }
}
