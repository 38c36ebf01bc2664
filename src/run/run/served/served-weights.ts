import { aroundOnce, aroundPolicy } from '../../../base/core/around.ts'
import type { Policy } from '../../../base/core/policy.ts'
import type { Instrument } from '../../../engine/rollout/attempt.ts'
import { makeWeightsGate, type OnUpdate } from '../pause.ts'
import { withVersions } from './with-versions.ts'

/** The weights that a worker samples from, as the coordinator last announced them. */
export interface ServedWeights {
  /** Instruments around every attempt: samples wait while weights change, and are labelled with their version. */
  readonly instruments: readonly Instrument[]
  /** Begins no sample, and calls `onIdle` when none is under way. */
  pause(onIdle: () => Promise<void>): void
  /** Takes over weights and goes on. */
  resume(news: News): Promise<void>
}

/** An announcement of weights. */
export interface News {
  readonly version: number | null
  /** The weights themselves, asked for if the policy has its weights inside. */
  weights(): Promise<Uint8Array | null>
}

/** Opens the weights of a run. */
export function makeServedWeights(policy: Policy, onUpdate: OnUpdate): ServedWeights {
  const gate = makeWeightsGate(onUpdate)
  let version: number | null = null
  let open: (() => void) | undefined
  const label = aroundOnce(sampling => {
    const own = labelled(sampling)
    return aroundPolicy(sampling, {
      async draw({ ask }) {
        const began = version
        const samples = await ask()
        const told = { began, ended: version }
        return samples.map(sample => withVersions(own, sample, told))
      },
      async drawOne(request, call) {
        const began = version
        const sample = await sampling.sample(request, call)
        return withVersions(own, sample, { began, ended: version })
      },
    })
  })
  return {
    instruments: [context => ({ ...context, policy: label(context.policy) }), gate.instrument],
    pause(onIdle) {
      if (open) return
      const opened = new Promise<void>(resolve => {
        open = resolve
      })
      const wait = async (): Promise<void> => {
        await onIdle()
        await opened
      }
      // If the confirmation cannot be sent, the worker counts as lost and notices by its heartbeat.
      gate.change(wait).catch(() => undefined)
    },
    async resume(news) {
      if (news.version !== version && policy.inside) {
        const bytes = await news.weights()
        if (bytes) await policy.inside.take(bytes)
      }
      version = news.version
      open?.()
      open = undefined
    },
  }
}

/** Labels samples with the announced version: weights inside count versions per process. */
function labelled(policy: Policy): Policy {
  if (!policy.inside) return policy
  return { ...policy, capabilities: { ...policy.capabilities, version: false } }
}
