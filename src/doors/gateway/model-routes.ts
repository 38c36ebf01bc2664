import type { TaskId } from '../../base/core/ids.ts'
import type { Answerer } from '../../engine/capture/dialects/answer.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import type { DialectRoute } from '../../engine/capture/dialects/routes.ts'
import type { Door } from '../door/door.ts'
import type { Reply } from '../door/reply.ts'
import type { DoorRequest } from '../door/request.ts'
import { abortWhenGone, answerOverHttp, dialectRouteOf } from './answer-http.ts'
import { checkName } from './attempt-names.ts'
import { type GatewayAttempt, liveOf } from './attempts.ts'
import type { Gateway } from './gateway.ts'
import { hidePieces } from './hidden-pieces.ts'
import { type ModelPath, modelPathOf } from './model-path.ts'
import { checkSecret, credentialOf } from './secrets.ts'

/** A request that asks the model, and what its path names. */
type Asking = DoorRequest<ModelPath>

/** Adds the paths that agents ask the model on. Who may ask is known from the head alone. */
export function addModelRoutes(door: Door, gateway: Gateway): void {
  const admit = (request: Asking): void => {
    const route = dialectRouteOf(request, request.params.path)
    checkAsking(gateway, request, route)
  }
  const options = { admit, changesNothing: true }
  door.on(['GET', 'POST'], modelPathOf, options, (request, reply) => {
    const { path } = request.params
    return answerOverHttp({
      request,
      path,
      reply,
      answererOf({ route, id, body }) {
        const attempt = attemptOf(gateway, request, route)
        if (attempt) reply.header('x-espalier-attempt', encodeURIComponent(attempt.id))
        const { method, headers } = request
        const requestId =
          attempt && route.kind === 'answer'
            ? liveOf(attempt).retries.nameOf({ method, path, headers, body })
            : undefined
        return answererOf(gateway, attempt, { id, reply, requestId })
      },
    })
  })
}

/** The attempt whose token a request brings. */
function ownOf({ attempts }: Gateway, { headers }: Asking): GatewayAttempt | undefined {
  const credential = credentialOf(headers)
  return credential === undefined ? undefined : attempts.byToken(credential)
}

/** The attempt that a request names, by its path or a header. */
function namedBy({ params, headers }: Asking): string | undefined {
  const header = headers['x-espalier-attempt']
  return params.attempt ?? (typeof header === 'string' ? header : undefined)
}

/** Throws unless a request brings the token of its attempt or the secret of the model. */
function checkAsking(gateway: Gateway, request: Asking, route: DialectRoute): void {
  const own = ownOf(gateway, request)
  const named = namedBy(request)
  if (own) {
    if (named === undefined || named === own.id) return
    throw new RequestProblem('forbidden', 'this token is good for another attempt')
  }
  const { secrets } = gateway
  checkSecret('model', secrets, credentialOf(request.headers))
  if (route.kind === 'models' || named !== undefined) return
  // Whoever comes this far has the model's secret, or there is none.
  throw new RequestProblem(
    secrets.model === undefined ? 'unauthorized' : 'invalid',
    'whose attempt is this? Open one with POST /attempts and send its token as the API key, or ' +
      'put /attempts/NAME before /v1 in the base URL',
  )
}

/**
 * The attempt that a request belongs to: by its token, or, for clients with the model secret, by its
 * path or a header. Models are listed to everybody who may use one.
 */
function attemptOf(
  gateway: Gateway,
  request: Asking,
  route: DialectRoute,
): GatewayAttempt | undefined {
  // Its attempt may have been closed while its body came.
  checkAsking(gateway, request, route)
  const own = ownOf(gateway, request)
  const named = namedBy(request)
  if (own || route.kind === 'models' || named === undefined) return own
  return gateway.attempts.get(named) ?? openNamed(gateway, named, request)
}

/** Opens the attempt that a path names if it does not exist yet, for agents that only know a base URL. */
function openNamed(gateway: Gateway, id: string, request: Asking): GatewayAttempt {
  const { attempts, readTask } = gateway
  const task = request.headers['x-espalier-task']
  const name = (typeof task === 'string' ? task : id) as TaskId
  const keepsTraces = request.url.startsWith('/rllm/') || request.url.startsWith('/openenv/')
  return attempts.open({ id: checkName(id), task: readTask(checkName(name)), keepsTraces })
}

interface Naming {
  /** Names the answer. */
  readonly id: string
  readonly reply: Reply
  /** Names the request: every retry of it has the same. */
  readonly requestId: string | undefined
}

function answererOf(
  gateway: Gateway,
  attempt: GatewayAttempt | undefined,
  { id, reply, requestId }: Naming,
): Answerer & { readonly requestId?: string } {
  const { attempts, model, decode } = gateway
  const asked = (): GatewayAttempt => {
    if (attempt) return attempt
    throw new RequestProblem('invalid', 'this request names no attempt')
  }
  return {
    model,
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
