import { aroundPolicy } from '../../base/core/around.ts'
import type { Call } from '../../base/core/call.ts'
import type { Policy } from '../../base/core/policy.ts'
import type { Absences } from '../../base/core/process/absences.ts'
import type { WeightSync, WrittenWeights } from '../../base/core/trainer.ts'
import { awayReason } from './transport/server-error.ts'

/** Waits for a server that is away, whatever it is asked, and asks it again when it is back. */
export function withAbsences(policy: Policy, absences: Absences): Policy {
  const server = policy.name
  const asked = <T>(ask: () => Promise<T>, { signal }: Call): Promise<T> =>
    absences.ask({ server, isAway: awayReason, ask, signal })
  const { weights } = policy
  return {
    ...aroundPolicy(policy, {
      draw: ({ ask, call }) => asked(() => ask(), call),
      drawOne: (request, call) => asked(() => policy.sample(request, call), call),
      question: ({ ask, call }) => asked(ask, call),
    }),
    ...(weights && {
      weights: { update: (written, call) => asked(() => weights.update(written, call), call) },
    }),
  }
}

/**
 * A server that was away may have been started again, with the weights it was started with: those that it was
 * given last are loaded again before anything is sampled from it.
 */
export function withLastWeights(policy: Policy): Policy {
  const { weights } = policy
  if (!weights) return policy
  let last: WrittenWeights | undefined
  let loading: Promise<void> | undefined
  let isSuspect = false
  const reload = async (): Promise<void> => {
    // All who sample wait for it, so none of them may stop it.
    await weights.update(last!, { signal: new AbortController().signal })
    isSuspect = false
  }
  const asked = async <T>(ask: () => Promise<T>): Promise<T> => {
    if (isSuspect && last) {
      loading ??= reload().finally(() => {
        loading = undefined
      })
      await loading
    }
    try {
      return await ask()
    } catch (cause) {
      if (last && awayReason(cause) !== undefined) isSuspect = true
      throw cause
    }
  }
  const sync: WeightSync = {
    async update(written, call) {
      await weights.update(written, call)
      last = written
      isSuspect = false
    },
  }
  return {
    ...aroundPolicy(policy, {
      draw: ({ ask }) => asked(() => ask()),
      drawOne: (request, call) => asked(() => policy.sample(request, call)),
    }),
    weights: sync,
  }
}
