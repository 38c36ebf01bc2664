import { aroundPolicy } from '../../base/core/around.ts'
import { type Lane, makeLane } from '../../base/core/lane.ts'
import type { Policy } from '../../base/core/policy.ts'

/** Lets at most `limit` requests to the policy run at one time; a lane can be shared by several. */
export function withLimit(policy: Policy, limit: number | Lane): Policy {
  if (typeof limit === 'number' && !(Number.isInteger(limit) && limit > 0)) {
    throw new RangeError(`A limit must be a whole number of at least 1, got ${limit}.`)
  }
  const lane = typeof limit === 'number' ? makeLane(policy.name, limit) : limit
  return aroundPolicy(policy, {
    draw: ({ call, ask }) => lane.run(call, ask),
    question: ({ call, ask }) => lane.run(call, ask),
  })
}
