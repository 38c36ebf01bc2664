import type { IncomingMessage } from 'node:http'
import { hostNameOf, isOwnHost } from './address.ts'
import { RefusedRequest } from './refused-request.ts'
import type { Reply } from './reply.ts'
import { mediaTypeOf, type RequestHead } from './request.ts'
import { bearerOf, isSameSecret } from './token.ts'

/** Where a door is and who may enter. */
export interface DoorOptions {
  /** The address it will listen on. */
  readonly host: string
  /** The token that every request needs; required if the door listens beyond loopback. */
  readonly token?: string
  /** Where a request carries its token. @default `Authorization: Bearer …` */
  readonly tokenOf?: (request: RequestHead) => string | undefined
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

/** The parts of a request that the rules for pages and names read. */
type Entering = Pick<IncomingMessage, 'headers' | 'method'>

/** Holds a request to the rules for names and pages, and tells its page what it may read. */
export function checkPlace(head: RequestHead, reply: Reply, options: DoorOptions): void {
  reply.header('x-content-type-options', 'nosniff')
  checkHost(head, options)
  checkOrigin(head, options)
  if (!allowOrigin(head, reply, options)) {
    reply.header('cross-origin-resource-policy', 'same-origin')
  }
}

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

/** Two Host headers come as one with a comma in it, which is no name of ours. */
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
  reply: Reply,
  { allowedOrigins = [] }: DoorOptions,
): boolean {
  if (origin === undefined || !allowedOrigins.includes(origin)) return false
  reply.header('access-control-allow-origin', origin)
  reply.header('vary', 'origin')
  reply.header('cross-origin-resource-policy', 'cross-origin')
  return true
}

/** Answers what a browser asks before it lets an allowed page send a request. */
export function answerPreflight(
  { method, headers: { origin } }: RequestHead,
  reply: Reply,
  { allowedOrigins = [] }: DoorOptions,
): boolean {
  if (method !== 'OPTIONS' || origin === undefined || !allowedOrigins.includes(origin)) return false
  reply.header('access-control-allow-methods', 'GET, POST, PUT, DELETE')
  reply.header('access-control-allow-headers', 'authorization, content-type, last-event-id')
  reply.empty(204)
  return true
}

/** Throws unless the request brings the token of the door, if it has one. */
export function checkToken(head: RequestHead, reply: Reply, options: DoorOptions): void {
  const { token, tokenOf = ({ headers }) => bearerOf(headers) } = options
  if (token === undefined) return
  const given = tokenOf(head)
  if (given !== undefined && isSameSecret(given, token)) return
  reply.header('www-authenticate', 'Bearer')
  throw noToken
}

const forms = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']

/** A form on any page can POST to any address, but only with one of three content types or none. */
export function checkContentType({ method, headers }: RequestHead, changesNothing = false): void {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return
  const type = mediaTypeOf(headers)
  if (type !== undefined && type !== '' && !forms.includes(type)) return
  // No form sends other methods than POST, so those may come without a body and its type.
  if (type === undefined && (method !== 'POST' || changesNothing)) return
  const got = type === undefined ? 'no content type' : type
  throw new RefusedRequest(415, `send Content-Type: application/json, not ${got}`)
}

/** Throws if a name is given twice. */
export function checkQuery({ query }: RequestHead): void {
  for (const [name, value] of Object.entries(query)) {
    if (typeof value === 'string') continue
    throw new RefusedRequest(400, `${JSON.stringify(name.slice(0, 100))} is given more than once`)
  }
}
