import type { Renderer } from '@espalier/text'
import { steadySeconds } from '../../../base/core/call.ts'
import type { GroupId, TaskId } from '../../../base/core/ids.ts'
import { openCapture } from '../../../engine/capture/capture.ts'
import type { Capture, CaptureContext } from '../../../engine/capture/contract.ts'
import type { Answerer } from '../../../engine/capture/dialects/answer.ts'
import { ResponseMemory } from '../../../engine/capture/dialects/openai/response-memory.ts'
import { plainContext } from '../../../engine/rollout/shared.ts'
import { embeddedPolicy } from '../../../learn/model/policy.ts'
import type { Door } from '../../door/door.ts'
import type { Reply } from '../../door/reply.ts'
import { abortWhenGone, answerOverHttp } from '../answer-http.ts'
import { hidePieces } from '../hidden-pieces.ts'
import type { Served } from './generation.ts'

/**
 * Adds the dialects that agents speak to the gateway, so that an agent that was trained there runs
 * here unchanged. Every request stands alone and is drawn as it asks for.
 */
export function addDialects(door: Door, served: Served, renderer: Renderer): void {
  const memory = new ResponseMemory()
  const context = contextOf(served, renderer)
  const answererOf = (reply: Reply): Answerer => ({
    model: served.name,
    memory,
    decode: id => renderer.decode(Int32Array.of(id)),
    respond(request, onDelta) {
      const { signal } = abortWhenGone(reply)
      const capture = captureOf(context, served)
      if (!onDelta) return capture.respond(request, { signal })
      return hidePieces(onDelta, hiding => capture.respond(request, { signal, onDelta: hiding }))
    },
    countTokens: request => captureOf(context, served).countTokens(request),
  })
  door.on(['GET', 'POST'], dialectPath, (request, reply) =>
    answerOverHttp({
      request,
      path: request.params.path,
      reply,
      answererOf: () => answererOf(reply),
    }),
  )
}

/** A path of a dialect, in whatever version of it. */
function dialectPath(path: string): { readonly path: string } | undefined {
  return /^\/v1(?:beta|alpha)?\//.test(path) ? { path } : undefined
}

/** Limits as large as the model's context: each request sets its own. */
function contextOf({ model, folder }: Served, renderer: Renderer): CaptureContext {
  const most = Number.MAX_SAFE_INTEGER
  const { context } = model.shape
  return plainContext({
    policy: embeddedPolicy(model, { folder, clock: steadySeconds, ownsModel: false }),
    renderer,
    limits: { turns: most, tokens: most, context, newTokens: context, seconds: most },
    concurrency: most,
  })
}

function captureOf(context: CaptureContext, { nextSeed }: Served): Capture {
  const task = { id: 'served' as TaskId, data: null }
  const { signal } = new AbortController()
  const attempt = { task, group: 'served' as GroupId, member: 0, seed: nextSeed(), signal }
  return openCapture({ context, attempt, samplingFrom: 'request' })
}
