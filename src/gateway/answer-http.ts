import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Answerer, answerRoute, type Outlet } from '../capture/dialects/answer.ts'
import { eventStream } from '../capture/dialects/dialect.ts'
import { RequestProblem } from '../capture/dialects/problem.ts'
import { type DialectRoute, routeOf } from '../capture/dialects/routes.ts'

/** A request of a dialect over HTTP. */
export interface HttpExchange {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  /** The path as the dialect has it. */
  readonly path: string
  /** What answers it; `id` names the answer. */
  readonly answererOf: (
    route: DialectRoute,
    id: string,
  ) => Answerer & { readonly requestId?: string }
}

/** Answers a request of a dialect, as one body or as a stream. */
export async function answerOverHttp(exchange: HttpExchange): Promise<FastifyReply> {
  const { request, reply, path } = exchange
  const route = routeOf(request.method, path, request.headers)
  if (!route) {
    throw new RequestProblem('not-found', `no ${request.method} ${path.slice(0, 200)} here`)
  }
  const id = randomUUID().replaceAll('-', '')
  const answerer = exchange.answererOf(route, id)
  const { requestId } = answerer
  reply.header('x-request-id', id)
  const outlet = outletOf(reply, route, request.query as Readonly<Record<string, unknown>>)
  const now = Math.floor(Date.now() / 1000)
  const given = { body: request.body, id, now, ...(requestId !== undefined && { requestId }) }
  await answerRoute(route, given, { answerer, outlet })
  return reply
}

/** Aborts when the client goes away before it was answered. */
export function abortWhenGone({ raw }: FastifyReply): AbortController {
  const controller = new AbortController()
  raw.on('close', () => {
    if (!raw.writableFinished) controller.abort(new Error('the client went away'))
  })
  return controller
}

/** Google streams a JSON list unless it is asked for events; all others stream events. */
function outletOf(
  reply: FastifyReply,
  { dialect }: DialectRoute,
  { alt }: Readonly<Record<string, unknown>>,
): Outlet {
  const isList = dialect.name === 'google' && alt !== 'sse'
  const { raw } = reply
  let pieces = 0
  return {
    body(status, body) {
      void reply.code(status).header('content-type', 'application/json; charset=utf-8')
      if (status === 429 || status === 503 || status === 529) void reply.header('retry-after', '1')
      void reply.send(JSON.stringify(body))
    },
    begin() {
      reply.hijack()
      const headers = reply.getHeaders() as Record<string, string>
      const type = isList ? 'application/json; charset=utf-8' : eventStream
      raw.writeHead(200, { ...headers, 'content-type': type, 'cache-control': 'no-cache' })
    },
    send(text) {
      if (text === '' || raw.destroyed) return
      if (!isList) raw.write(text)
      else raw.write((pieces++ === 0 ? '[' : ',\n') + text.replace(/^data: /, '').trimEnd())
    },
    end: () => void raw.end(isList ? ']' : ''),
  }
}
