import type { Call } from '../core/call.ts'
import type { Policy, SampleKey } from '../core/policy.ts'

/** One thing that is asked of a policy. */
export interface Operation {
  readonly kind: 'sample' | 'several' | 'score' | 'describe'
  /** The tree it belongs to; '' where it belongs to none. */
  readonly session: string
  readonly key?: SampleKey
}

/** Runs an operation; wrappers put what they add around `work`. */
export type Around = <T>(operation: Operation, call: Call, work: () => Promise<T>) => Promise<T>

/** The same policy with `run` around all that is asked of it. */
export function around(policy: Policy, run: Around): Policy {
  const { sampleSeveral, score, describe, takeLogprobs } = policy
  return {
    ...policy,
    sample(request, call) {
      const operation = { kind: 'sample', session: request.session, key: request.key } as const
      return run(operation, call, () => policy.sample(request, call))
    },
    ...(sampleSeveral && {
      sampleSeveral(request, seeds, call) {
        const operation = { kind: 'several', session: request.session, key: request.key } as const
        return run(operation, call, () => sampleSeveral(request, seeds, call))
      },
    }),
    ...(score && {
      score(ids, from, options, call) {
        const operation = { kind: 'score', session: options.session ?? '' } as const
        return run(operation, call, () => score(ids, from, options, call))
      },
    }),
    ...(describe && {
      describe: call => run({ kind: 'describe', session: '' }, call, () => describe(call)),
    }),
    ...(takeLogprobs && { takeLogprobs }),
    [Symbol.asyncDispose]: () => policy[Symbol.asyncDispose](),
  }
}
