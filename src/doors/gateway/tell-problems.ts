import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { DialectProblem } from '../../engine/capture/dialects/dialect.ts'
import {
  RequestProblem,
  statusOfProblem,
  toProblem,
} from '../../engine/capture/dialects/problem.ts'
import { dialectOf } from '../../engine/capture/dialects/routes.ts'
import { modelPathOf } from './model-path.ts'

/** Writes errors in the shape of the request's dialect; on other paths in OpenAI's shape or as plain text. */
export function tellProblems(server: FastifyInstance, elsewhere: 'openai' | 'words'): void {
  const tell = async (cause: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const { url, headers } = request
    const path = modelPathOf(url.split('?')[0]!)?.path
    if (path === undefined && elsewhere === 'words') {
      const problem = problemOf(cause)
      return await reply.code(statusOfProblem(problem.kind)).send({ error: problem.message })
    }
    const { status, body } = problemIn(cause, { path: path ?? '', headers })
    return await reply.code(status).send(body)
  }
  server.setErrorHandler(tell)
  server.setNotFoundHandler((request, reply) => {
    const message = `no ${request.method} ${request.url.slice(0, 200)} here`
    return tell(new RequestProblem('not-found', message), request, reply)
  })
}

/** What is wrong, in the shape of the dialect that the path belongs to. */
export function problemIn(
  cause: unknown,
  asked: { readonly path: string; readonly headers: IncomingHttpHeaders },
): DialectProblem {
  return dialectOf(asked.path, asked.headers).problem(problemOf(cause))
}

const kinds = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  413: 'too-large',
  429: 'too-many',
  503: 'unavailable',
} as const

/** Refusals of the door or its parser have a status and a message that may be shown. */
function problemOf(cause: unknown): RequestProblem {
  const { statusCode, message } = cause as { statusCode?: number; message?: string }
  if (cause instanceof RequestProblem || statusCode === undefined || statusCode >= 500) {
    return toProblem(cause)
  }
  const kind = kinds[statusCode as keyof typeof kinds] ?? 'invalid'
  return new RequestProblem(kind, message ?? 'the request could not be read')
}
