import type {
  PolicyScene,
  StagedPolicy,
  StatedRequest,
} from '../../src/base/core/conformance/policy.conformance.ts'
import type { Policy } from '../../src/base/core/policy.ts'
import type { Foreign } from '../foreign.ts'
import type { Serving, ServingOptions } from './serving.ts'

/** The two sides of a scene, and how requests between them are read. */
export interface Stage {
  readonly serve: (options: ServingOptions) => Promise<Serving>
  readonly connect: (url: string, options: { readonly deadlineSeconds?: number }) => Policy
  readonly stated: (body: Foreign) => StatedRequest
  /** The path of requests that count. @default all that have a body */
  readonly path?: string
}

/** A policy before a server that plays the scene. */
export async function openStage(scene: PolicyScene, stage: Stage): Promise<StagedPolicy> {
  const { ids, logprobs, text, fault, pace, hold, deadlineSeconds } = scene
  const server = await stage.serve({
    answer: () => ({ ids, logprobs, finish: 'stop', text }),
    fault: () => fault,
    hold: () => hold,
    ...(pace !== undefined && { pace }),
  })
  const policy = stage.connect(server.url, {
    ...(deadlineSeconds !== undefined && { deadlineSeconds }),
  })
  return {
    policy,
    stated: () =>
      server.seen
        .filter(({ path, body }) => body !== undefined && path === (stage.path ?? path))
        .map(({ body }) => stage.stated(body)),
    async [Symbol.asyncDispose]() {
      await policy[Symbol.asyncDispose]()
      await server.close()
    },
  }
}

/** How most servers are told to draw. */
export function statedSampling(body: Foreign): StatedRequest['sampling'] {
  return {
    temperature: body.temperature,
    topP: body.top_p,
    topK: Math.max(0, body.top_k),
    minP: body.min_p,
  }
}
