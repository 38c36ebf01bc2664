import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Answerer } from '../capture/dialects/answer.ts'
import { RequestProblem } from '../capture/dialects/problem.ts'
import type { DialectRoute } from '../capture/dialects/routes.ts'
import type { TaskId } from '../core/ids.ts'
import { abortWhenGone, answerOverHttp } from './answer-http.ts'
import { checkName } from './attempt-names.ts'
import { type GatewayAttempt, liveOf } from './attempts.ts'
import type { Gateway } from './gateway.ts'
import { checkSecret, credentialOf } from './secrets.ts'

/** Where the paths of the dialects begin, and where in them an attempt is named. */
const prefixes = ['', '/attempts/:attempt', '/rllm', '/rllm/sessions/:attempt', '/openenv']
const versions = ['/v1', '/v1beta', '/v1alpha']

interface Named {
  Params: { readonly attempt?: string; readonly '*': string }
}

/** Adds the paths that agents ask the model on. */
export function addModelRoutes(server: FastifyInstance, gateway: Gateway): void {
  for (const prefix of prefixes) {
    for (const version of versions) {
      server.route<Named>({
        method: ['GET', 'POST'],
        url: `${prefix}${version}/*`,
        config: { needsNoToken: true, changesNothing: true },
        handler: (request, reply) =>
          answer(gateway, request, { reply, path: `${version}/${request.params['*']}` }),
      })
    }
    // Clients whose base URL ends before the version, or leaves it out.
    for (const path of ['/chat/completions', '/responses', '/messages', '/models']) {
      server.route<Named>({
        method: ['GET', 'POST'],
        url: `${prefix}${path}`,
        config: { needsNoToken: true, changesNothing: true },
        handler: (request, reply) => answer(gateway, request, { reply, path }),
      })
    }
  }
}

/** Answers in the attempt that the request belongs to. */
function answer(
  gateway: Gateway,
  request: FastifyRequest<Named>,
  { reply, path }: { readonly reply: FastifyReply; readonly path: string },
): Promise<FastifyReply> {
  return answerOverHttp({
    request,
    reply,
    path,
    answererOf(route, id) {
      const attempt = admit(gateway, request, route)
      if (attempt) reply.header('x-espalier-attempt', encodeURIComponent(attempt.id))
      const requestId =
        attempt && route.kind === 'answer'
          ? liveOf(attempt).retries.nameOf(request.headers, request.body)
          : undefined
      return {
        ...answererOf(gateway, attempt, { id, reply }),
        ...(requestId !== undefined && { requestId }),
      }
    },
  })
}

/**
 * The attempt that a request belongs to: by its token, or, for clients with the model secret, by its
 * path or a header. Models are listed to everybody who may use one.
 */
function admit(
  gateway: Gateway,
  request: FastifyRequest<Named>,
  route: DialectRoute,
): GatewayAttempt | undefined {
  const { attempts, secrets } = gateway
  const credential = credentialOf(request.headers)
  const own = credential === undefined ? undefined : attempts.byToken(credential)
  const header = request.headers['x-espalier-attempt']
  const named = request.params.attempt ?? (typeof header === 'string' ? header : undefined)
  if (own) {
    if (named === undefined || named === own.id) return own
    throw new RequestProblem('forbidden', 'this token is good for another attempt')
  }
  checkSecret('model', secrets, credential)
  if (route.kind === 'models') return undefined
  if (named === undefined) {
    throw new RequestProblem(
      'invalid',
      'whose attempt is this? Open one with POST /attempts and send its token as the API key, or ' +
        'put /attempts/NAME before /v1 in the base URL',
    )
  }
  return attempts.get(named) ?? openNamed(gateway, named, request)
}

/** Opens the attempt that a path names if it does not exist yet, for agents that only know a base URL. */
function openNamed(gateway: Gateway, id: string, request: FastifyRequest): GatewayAttempt {
  const { attempts, readTask } = gateway
  const task = request.headers['x-espalier-task']
  const name = (typeof task === 'string' ? task : id) as TaskId
  const keepsTraces = request.url.startsWith('/rllm/') || request.url.startsWith('/openenv/')
  return attempts.open({ id: checkName(id), task: readTask(checkName(name)), keepsTraces })
}

function answererOf(
  gateway: Gateway,
  attempt: GatewayAttempt | undefined,
  { id, reply }: { readonly id: string; readonly reply: FastifyReply },
): Answerer {
  const { attempts, model, images, decode } = gateway
  const asked = (): GatewayAttempt => {
    if (attempt) return attempt
    throw new RequestProblem('invalid', 'this request names no attempt')
  }
  return {
    model,
    images,
    decode,
    ...(attempt?.live && { memory: attempt.live.memory }),
    respond(request, onDelta) {
      const controller = abortWhenGone(reply)
      const call = { signal: controller.signal, controller, id, model }
      return attempts.respond(asked(), request, onDelta ? { ...call, onDelta } : call)
    },
    countTokens: request => liveOf(asked()).capture.countTokens(request),
  }
}
