import type { TaskId } from '../../base/core/ids.ts'
import type { Answerer } from '../../engine/capture/dialects/answer.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import type { DialectRoute } from '../../engine/capture/dialects/routes.ts'
import type { DirectReply } from '../door/direct-reply.ts'
import type { DirectHead, DirectRequest, DirectRoutes } from '../door/direct-routes.ts'
import { abortWhenGone, answerOverHttp, tellProblem } from './answer-http.ts'
import { checkName } from './attempt-names.ts'
import { type GatewayAttempt, liveOf } from './attempts.ts'
import type { Gateway } from './gateway.ts'
import { hidePieces } from './hidden-pieces.ts'
import { type ModelPath, modelPathOf } from './model-path.ts'
import { checkSecret, credentialOf } from './secrets.ts'

/** The paths that agents ask the model on. */
export function modelRoutes(gateway: Gateway): DirectRoutes<ModelPath> {
  return {
    find: (method, path) => (method === 'POST' || method === 'GET' ? modelPathOf(path) : undefined),
    answer: (found, request, reply) => answer(gateway, decoded(found), { request, reply }),
    refuse: ({ path }, { headers }, { cause, reply }) =>
      tellProblem(cause, { path, headers }, reply),
  }
}

/** The same, with the names in it as they were meant. */
function decoded({ path, attempt }: ModelPath): ModelPath {
  const named = path.includes('%') ? unescaped(path) : path
  return attempt === undefined ? { path: named } : { path: named, attempt: unescaped(attempt) }
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new RequestProblem('invalid', `${JSON.stringify(part.slice(0, 200))} is no part of a URL`)
  }
}

/** A request of an agent, and the attempt that its path names. */
type Named = Pick<DirectHead, 'headers' | 'url'> & Pick<ModelPath, 'attempt'>

/** Answers in the attempt that the request belongs to. */
function answer(
  gateway: Gateway,
  { path, attempt: name }: ModelPath,
  { request, reply }: { readonly request: DirectRequest; readonly reply: DirectReply },
): Promise<void> {
  const { method, query, headers, body } = request
  return answerOverHttp({
    method,
    path,
    query,
    headers,
    body,
    reply,
    answererOf(route, id) {
      const attempt = admit(
        gateway,
        name === undefined ? request : { attempt: name, ...request },
        route,
      )
      if (attempt) reply.header('x-espalier-attempt', encodeURIComponent(attempt.id))
      const requestId =
        attempt && route.kind === 'answer'
          ? liveOf(attempt).retries.nameOf({ method, path, headers, body })
          : undefined
      return answererOf(gateway, attempt, { id, reply, requestId })
    },
  })
}

/**
 * The attempt that a request belongs to: by its token, or, for clients with the model secret, by its
 * path or a header. Models are listed to everybody who may use one.
 */
function admit(gateway: Gateway, request: Named, route: DialectRoute): GatewayAttempt | undefined {
  const { attempts, secrets } = gateway
  const credential = credentialOf(request.headers)
  const own = credential === undefined ? undefined : attempts.byToken(credential)
  const header = request.headers['x-espalier-attempt']
  const named = request.attempt ?? (typeof header === 'string' ? header : undefined)
  if (own) {
    if (named === undefined || named === own.id) return own
    throw new RequestProblem('forbidden', 'this token is good for another attempt')
  }
  checkSecret('model', secrets, credential)
  if (route.kind === 'models') return undefined
  if (named === undefined) {
    // Whoever comes this far has the model's secret, or there is none.
    throw new RequestProblem(
      secrets.model === undefined ? 'unauthorized' : 'invalid',
      'whose attempt is this? Open one with POST /attempts and send its token as the API key, or ' +
        'put /attempts/NAME before /v1 in the base URL',
    )
  }
  return attempts.get(named) ?? openNamed(gateway, named, request)
}

/** Opens the attempt that a path names if it does not exist yet, for agents that only know a base URL. */
function openNamed(gateway: Gateway, id: string, request: Named): GatewayAttempt {
  const { attempts, readTask } = gateway
  const task = request.headers['x-espalier-task']
  const name = (typeof task === 'string' ? task : id) as TaskId
  const keepsTraces = request.url.startsWith('/rllm/') || request.url.startsWith('/openenv/')
  return attempts.open({ id: checkName(id), task: readTask(checkName(name)), keepsTraces })
}

interface Naming {
  /** Names the answer. */
  readonly id: string
  readonly reply: DirectReply
  /** The same for every retry of one request. */
  readonly requestId: string | undefined
}

function answererOf(
  gateway: Gateway,
  attempt: GatewayAttempt | undefined,
  { id, reply, requestId }: Naming,
): Answerer & { readonly requestId?: string } {
  const { attempts, model, images, decode } = gateway
  const asked = (): GatewayAttempt => {
    if (attempt) return attempt
    throw new RequestProblem('invalid', 'this request names no attempt')
  }
  return {
    model,
    images,
    decode,
    respond(request, onDelta) {
      const controller = abortWhenGone(reply)
      const call = { signal: controller.signal, controller, id, model }
      if (!onDelta) return attempts.respond(asked(), request, call)
      return hidePieces(onDelta, hiding =>
        attempts.respond(asked(), request, { onDelta: hiding, ...call }),
      )
    },
    countTokens: request => liveOf(asked()).capture.countTokens(request),
    ...(attempt?.live && { memory: attempt.live.memory }),
    ...(requestId !== undefined && { requestId }),
  }
}
