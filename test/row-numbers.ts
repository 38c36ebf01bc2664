import { aggregationNames } from '../src/base/math/aggregation.ts'
import type { RowNumbers } from '../src/base/math/paths.ts'
import { random, seedOf } from '../src/base/math/random.ts'
import { lossNames, type NamedOptions } from '../src/base/math/registry.ts'

const fixed = ['bnpo', 'dr-grpo']
const kinds = aggregationNames.map(kind => (kind === 'constant' ? { kind, divisor: 7 } : { kind }))

/** Every loss with every aggregation that it can have. */
export const lossForms: readonly (readonly [string, NamedOptions])[] = lossNames.flatMap(name =>
  fixed.includes(name)
    ? [[name, {}] as const]
    : kinds.map(aggregation => [name, { aggregation }] as const),
)

/** Numbers of tokens by their names, ratios well away from 1 among them. */
export function numbersOf(keys: readonly string[], seed: number): Required<RowNumbers> {
  const draw = (name: string, low: number, high: number): Float64Array =>
    Float64Array.from(keys, key => low + (high - low) * random(seedOf(name, seed, key))())
  const logprobs = draw('logprob', -4, -0.1)
  const ratios = draw('ratio', -0.8, 0.8)
  return {
    logprobs,
    oldLogprobs: logprobs.map((value, index) => value - ratios[index]!),
    refLogprobs: draw('reference', -4, -0.1),
    entropies: draw('entropy', 0, 2),
  }
}
