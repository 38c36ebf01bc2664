import type { FastifyInstance } from 'fastify'
import { openAiChat } from '../capture/dialects/openai-chat.ts'
import { RequestProblem, statusOfProblem, toProblem } from '../capture/dialects/problem.ts'
import { routeOf } from '../capture/dialects/routes.ts'
import { openDoor } from '../door/door.ts'
import { addControlRoutes } from './control-routes.ts'
import type { Gateway } from './gateway.ts'
import { addModelRoutes } from './model-routes.ts'
import { addOpenEnvRoutes } from './openenv-routes.ts'
import { addRllmRoutes } from './rllm-routes.ts'

/** Where a gateway listens. */
export interface GatewayServerOptions {
  /** 0 takes any free one. @default 8700 */
  readonly port?: number
  /** @default '127.0.0.1' */
  readonly host?: string
  /** @default 64 MiB */
  readonly bodyBytes?: number
  readonly allowedHosts?: readonly string[]
}

/** A gateway that listens; disposing of it takes no more requests and closes its connections. */
export interface GatewayServer extends AsyncDisposable {
  readonly url: string
}

/** Serves a gateway over HTTP. */
export async function serveGateway(
  gateway: Gateway,
  options: GatewayServerOptions = {},
): Promise<GatewayServer> {
  const { port = 8700, host = '127.0.0.1', bodyBytes, allowedHosts } = options
  const { control } = gateway.secrets
  const server = openDoor({
    host,
    ...(control !== undefined && { token: control }),
    ...(bodyBytes !== undefined && { bodyBytes }),
    ...(allowedHosts && { allowedHosts }),
  })
  tellProblems(server)
  addModelRoutes(server, gateway)
  addControlRoutes(server, gateway)
  addRllmRoutes(server, gateway)
  addOpenEnvRoutes(server, gateway)
  const url = await server.listen({ port, host })
  return { url, [Symbol.asyncDispose]: async () => await server.close() }
}

/** Tells what is wrong in the shape of the dialect that was spoken, or as plain words. */
function tellProblems(server: FastifyInstance): void {
  server.setErrorHandler(async (cause, request, reply) => {
    const problem = problemOf(cause)
    const path = dialectPath(request.url)
    const route = path === undefined ? undefined : routeOf(request.method, path, request.headers)
    if (path !== undefined) {
      const { status, body } = (route?.dialect ?? openAiChat).problem(problem)
      return await reply.code(status).send(body)
    }
    return await reply.code(statusOfProblem(problem.kind)).send({ error: problem.message })
  })
  server.setNotFoundHandler(async ({ method, url }, reply) => {
    await reply.code(404).send({ error: `no ${method} ${url.slice(0, 200)} here` })
  })
}

/** The part of a path that a dialect has; nothing where none does. */
function dialectPath(url: string): string | undefined {
  const path = url.split('?')[0]!
  const match =
    /^(?:\/attempts\/[^/]+|\/rllm(?:\/sessions\/[^/]+)?|\/openenv)?(\/v1(?:beta|alpha)?\/.*|\/(?:chat\/completions|responses|messages|models))$/
  return match.exec(path)?.[1]
}

const kinds = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  413: 'too-large',
  429: 'too-many',
  503: 'unavailable',
} as const

/** What the door or its parser refuses has a status and words that may be told. */
function problemOf(cause: unknown): RequestProblem {
  const { statusCode, message } = cause as { statusCode?: number; message?: string }
  if (cause instanceof RequestProblem || statusCode === undefined || statusCode >= 500) {
    return toProblem(cause)
  }
  const kind = kinds[statusCode as keyof typeof kinds] ?? 'invalid'
  return new RequestProblem(kind, message ?? 'the request could not be read')
}
