import type { Policy } from '../../base/core/policy.ts'

/**
 * A policy that passes requests of other seats to their players. What a run wraps around its policy,
 * such as a budget or a record, then applies to every seat.
 */
export function seatedPolicy(
  policy: Policy,
  players: ReadonlyMap<string, { readonly policy: Policy }>,
): Policy {
  if (players.size === 0) return policy
  const { sampleSeveral, describe, takeLogprobs, score } = policy
  return {
    name: policy.name,
    capabilities: policy.capabilities,
    sample: (request, call) => {
      const player = request.seat === undefined ? undefined : players.get(request.seat)
      return (player?.policy ?? policy).sample(request, call)
    },
    ...(sampleSeveral && {
      sampleSeveral: (request, seeds, call) => sampleSeveral.call(policy, request, seeds, call),
    }),
    ...(score && {
      score: (ids, from, options, call) => score.call(policy, ids, from, options, call),
    }),
    ...(describe && { describe: call => describe.call(policy, call) }),
    ...(takeLogprobs && { takeLogprobs: found => takeLogprobs.call(policy, found) }),
    [Symbol.asyncDispose]: () => policy[Symbol.asyncDispose](),
  }
}
