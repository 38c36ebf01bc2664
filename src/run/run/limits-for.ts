import type { Policy } from '../../base/core/policy.ts'
import type { Limits } from '../../engine/rollout/attempt.ts'
import { defaults, withoutUndefined } from '../settings/settings.ts'
import type { RollOptions } from './roll-options.ts'

/** The limits of attempts: none is longer than the context that the policy says it has. */
export async function limitsFor(
  policy: Policy,
  { limits: given, tell, signal }: RollOptions,
  isAsked: boolean,
): Promise<Partial<Limits>> {
  const limits = withoutUndefined(given ?? {})
  const { context: wanted = defaults.maxContext } = limits
  const served = await servedContext(policy, isAsked, signal)
  if (!served || served >= wanted) return limits
  if (!policy.inside) {
    tell?.(
      `WARNING: ${policy.name} takes ${served} tokens at most, less than --max-context ${wanted}: ` +
        `attempts end at ${served}`,
    )
  }
  return { ...limits, context: served }
}

/** The most tokens that the policy takes, if it says so. Through the policy itself, so that a record has it too. */
async function servedContext(
  policy: Policy,
  isAsked: boolean,
  signal = new AbortController().signal,
): Promise<number | undefined> {
  if (policy.inside) return policy.inside.context
  if (!isAsked) return undefined
  try {
    return (await policy.describe?.({ signal }))?.context
  } catch {
    // Whatever is wrong with it, rolling will meet it and say so better.
    signal.throwIfAborted()
    return undefined
  }
}
