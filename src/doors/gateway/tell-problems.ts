import type { IncomingHttpHeaders } from 'node:http'
import type { DialectProblem } from '../../engine/capture/dialects/dialect.ts'
import {
  type ProblemKind,
  RequestProblem,
  statusOfProblem,
  toProblem,
} from '../../engine/capture/dialects/problem.ts'
import { dialectOf } from '../../engine/capture/dialects/routes.ts'
import type { Reply } from '../door/reply.ts'
import type { RequestHead } from '../door/request.ts'
import { modelPathOf } from './model-path.ts'

/** Writes errors in the shape of the request's dialect; on other paths in OpenAI's shape or as plain text. */
export function problemTeller(elsewhere: 'openai' | 'words') {
  return (cause: unknown, { path, headers }: RequestHead, reply: Reply): void => {
    const own = modelPathOf(path)?.path
    if (own === undefined && elsewhere === 'words') {
      const problem = problemOf(cause)
      reply.status = statusOfProblem(problem.kind)
      reply.give({ error: problem.message })
      return
    }
    const { status, body } = problemIn(cause, { path: own ?? '', headers })
    reply.status = status
    reply.give(body)
  }
}

/** What is wrong, in the shape of the dialect that the path belongs to. */
function problemIn(
  cause: unknown,
  asked: { readonly path: string; readonly headers: IncomingHttpHeaders },
): DialectProblem {
  return dialectOf(asked.path, asked.headers).problem(problemOf(cause))
}

const kinds: Readonly<Record<number, ProblemKind>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  413: 'too-large',
  429: 'too-many',
  503: 'unavailable',
}

/** Refusals of the door or its parser have a status and a message that may be shown. */
function problemOf(cause: unknown): RequestProblem {
  const { statusCode, message } = cause as { statusCode?: number; message?: string }
  if (cause instanceof RequestProblem || statusCode === undefined) return toProblem(cause)
  const kind = kinds[statusCode]
  if (kind === undefined && statusCode >= 500) return toProblem(cause)
  return new RequestProblem(kind ?? 'invalid', message ?? 'the request could not be read')
}
