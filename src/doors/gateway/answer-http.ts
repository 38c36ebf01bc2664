import { randomUUID } from 'node:crypto'
import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { listenerCount } from '../../base/core/call.ts'
import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'
import { type Answerer, answerRoute, type Outlet } from '../../engine/capture/dialects/answer.ts'
import { eventStream } from '../../engine/capture/dialects/dialect.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import { type DialectRoute, routeOf } from '../../engine/capture/dialects/routes.ts'
import type { Reply } from '../door/reply.ts'
import type { DoorRequest, Query, RequestHead } from '../door/request.ts'

/** A request of a dialect over HTTP. */
export interface HttpExchange {
  readonly request: DoorRequest
  /** The path as the dialect has it. */
  readonly path: string
  readonly reply: Reply
  /** What answers it, given its body; `id` names the answer. */
  readonly answererOf: (asked: AskedOfModel) => Answerer & { readonly requestId?: string }
}

/** A request of a dialect that was read. */
export interface AskedOfModel {
  readonly route: DialectRoute
  readonly id: string
  readonly body: unknown
}

/** Answers a request of a dialect, as one body or as a stream. */
export async function answerOverHttp(exchange: HttpExchange): Promise<void> {
  const { request, reply, path } = exchange
  const route = dialectRouteOf(request, path)
  const body = await request.json()
  const id = randomUUID().replaceAll('-', '')
  const answerer = exchange.answererOf({ route, id, body })
  const { requestId } = answerer
  reply.header('x-request-id', id)
  const outlet = outletOf(reply, route, request.query)
  const now = Math.floor(Date.now() / 1000)
  const given = { body, id, now, ...(requestId !== undefined && { requestId }) }
  await answerRoute(route, given, { answerer, outlet })
}

/** The route of a dialect that has such a path. */
export function dialectRouteOf({ method, headers }: RequestHead, path: string): DialectRoute {
  const route = routeOf(method, path, headers)
  if (route) return route
  throw new RequestProblem('not-found', `no ${method} ${path.slice(0, 200)} here`)
}

const json = 'application/json; charset=utf-8'

/**
 * Controllers of connections whose last request was answered. A new one and its listeners cost more
 * than most of what a request needs, so the next request of the connection takes it over.
 */
const spare = new WeakMap<Socket, AbortController>()

/** Aborts when the client goes away before it was answered. */
export function abortWhenGone({ raw }: { readonly raw: ServerResponse }): AbortController {
  const { socket } = raw
  const known = socket ? spare.get(socket) : undefined
  const controller = known ?? new AbortController()
  if (socket) spare.delete(socket)
  raw.on('close', () => {
    if (!raw.writableFinished) controller.abort(new Error('the client went away'))
    else if (socket && isUnheard(controller.signal)) spare.set(socket, controller)
  })
  return controller
}

/** Whether a signal can begin anew: it did not abort, and nobody listens to it any more. */
function isUnheard(signal: AbortSignal): boolean {
  const own = listenerCount(signal)
  const entries = own === undefined ? 0 : 1
  const others = getEventListeners(signal, 'abort').length - entries
  return !signal.aborted && others === 0 && (own ?? 0) === 0
}

/** Google streams a JSON list unless it is asked for events; all others stream events. */
function outletOf(reply: Reply, { dialect }: DialectRoute, { alt }: Query): Outlet {
  const isList = dialect.streamsList === true && alt !== 'sse'
  const { raw } = reply
  let pieces = 0
  return {
    body(status, body) {
      if (status === 429 || status === 503 || status === 529) reply.header('retry-after', '1')
      reply.send(status, json, JSON.stringify(body))
    },
    begin: () => reply.begin(isList ? json : eventStream),
    send(text) {
      if (text === '' || raw.destroyed) return
      const shown = withoutSecretsInJson(text)
      if (!isList) raw.write(shown)
      else raw.write((pieces++ === 0 ? '[' : ',\n') + shown.replace(/^data: /, '').trimEnd())
    },
    end: () => void raw.end(isList ? ']' : ''),
  }
}
