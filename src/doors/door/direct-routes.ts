import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import { type BodyMemory, openBodyMemory } from './body-memory.ts'
import { DirectReply } from './direct-reply.ts'
import { mediaTypeOf, RefusedRequest, readJsonBody } from './json-body.ts'

/** The head of a request: what is known before its body is read. */
export interface DirectHead {
  readonly method: string
  /** The path and the query, as they were sent. */
  readonly url: string
  readonly query: Readonly<Record<string, unknown>>
  readonly headers: IncomingHttpHeaders
}

/** A request that was let in, with its body read as JSON. */
export interface DirectRequest extends DirectHead {
  /** `undefined` where there is none. */
  readonly body: unknown
}

/**
 * Routes that are asked so often that the router's hooks and replies would cost as much as the
 * answer: they are given the request as it comes, under the same rules as all others of the door.
 */
export interface DirectRoutes<Found extends object = object> {
  /** What a request asks for; nothing where the router knows better. */
  find(method: string, path: string): Found | undefined
  answer(found: Found, request: DirectRequest, reply: DirectReply): Promise<void>
  /** Tells why a request was refused, or what went wrong with it. */
  refuse(found: Found, head: DirectHead, problem: DirectProblem): void
}

/** A request that was not answered. */
export interface DirectProblem {
  readonly cause: unknown
  readonly reply: DirectReply
}

/** What the door does with every request of such a route. */
export interface DirectEntry {
  /** Refuses who may not enter by throwing a `RefusedRequest`. */
  readonly enter: (head: DirectHead, reply: DirectReply) => void
  readonly bodyBytes: number
}

/** Gives requests to the routes; tells whether they took one. */
export type TryDirect = (request: IncomingMessage, response: ServerResponse) => boolean

/** Opens the way to routes beside the router. */
export function openDirect(routes: DirectRoutes, entry: DirectEntry): TryDirect {
  const memory = openBodyMemory()
  return (request, response) => {
    const { method = '', url = '' } = request
    const mark = url.indexOf('?')
    const path = mark < 0 ? url : url.slice(0, mark)
    const found = routes.find(method, path)
    if (!found) return false
    const query = mark < 0 ? none : parseQuery(url.slice(mark + 1))
    const head = { method, url, query, headers: request.headers }
    void answer(request, head, { routes, found, entry, memory, reply: new DirectReply(response) })
    return true
  }
}

const none: DirectHead['query'] = {}

interface Answering {
  readonly routes: DirectRoutes
  readonly found: object
  readonly entry: DirectEntry
  readonly memory: BodyMemory
  readonly reply: DirectReply
}

async function answer(
  request: IncomingMessage,
  head: DirectHead,
  { routes, found, entry, memory, reply }: Answering,
): Promise<void> {
  const { method, url, query, headers } = head
  let isBodyLeft = false
  try {
    entry.enter(head, reply)
    isBodyLeft = method !== 'GET' && isBodyTyped(headers)
    const options = { limit: entry.bodyBytes, memory }
    const body = isBodyLeft ? await readJsonBody(request, options) : undefined
    isBodyLeft = false
    await routes.answer(found, { method, url, query, headers, body }, reply)
  } catch (cause) {
    // Whoever sent a body that is refused may be sending on.
    if (isBodyLeft) reply.header('connection', 'close')
    routes.refuse(found, head, { cause, reply })
  }
}

/** Whether there is a body to be read; refuses one that is not JSON. */
function isBodyTyped(headers: IncomingHttpHeaders): boolean {
  const type = mediaTypeOf(headers)
  if (type === 'application/json') return true
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (type === undefined && encoding === undefined && length === '0') return false
  throw new RefusedRequest(415, 'send the body as application/json')
}
