import type { FastifyInstance } from 'fastify'
import { openAiChat } from '../capture/dialects/openai/openai-chat.ts'
import { RequestProblem, statusOfProblem, toProblem } from '../capture/dialects/problem.ts'
import { routeOf } from '../capture/dialects/routes.ts'

/** Writes errors in the shape of the request's dialect; on other paths in OpenAI's shape or as plain text. */
export function tellProblems(server: FastifyInstance, elsewhere: 'openai' | 'words'): void {
  server.setErrorHandler(async (cause, request, reply) => {
    const problem = problemOf(cause)
    const path = dialectPath(request.url)
    const route = path === undefined ? undefined : routeOf(request.method, path, request.headers)
    if (path !== undefined || elsewhere === 'openai') {
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

/** Refusals of the door or its parser have a status and a message that may be shown. */
function problemOf(cause: unknown): RequestProblem {
  const { statusCode, message } = cause as { statusCode?: number; message?: string }
  if (cause instanceof RequestProblem || statusCode === undefined || statusCode >= 500) {
    return toProblem(cause)
  }
  const kind = kinds[statusCode as keyof typeof kinds] ?? 'invalid'
  return new RequestProblem(kind, message ?? 'the request could not be read')
}
