import type { SampledSegment } from '../../base/core/segment.ts'

/**
 * Mean entropy of the first tokens of a turn, as a share of ln(vocabulary): from the policy if it
 * reports it, else from its top candidates with the rest as one bucket. `undefined` if the policy
 * reports neither.
 */
export function turnEntropy(
  segments: readonly SampledSegment[],
  options: { readonly tokens: number; readonly vocabulary: number },
): number | undefined {
  const values: number[] = []
  for (const segment of segments) {
    for (let index = 0; index < segment.ids.length && values.length < options.tokens; index++) {
      const value = tokenEntropy(segment, index)
      if (value === undefined) return undefined
      values.push(value)
    }
  }
  if (values.length === 0) return undefined
  return (
    values.reduce((sum, value) => sum + value, 0) / values.length / Math.log(options.vocabulary)
  )
}

function tokenEntropy({ entropies, top }: SampledSegment, index: number): number | undefined {
  if (entropies) return entropies[index]!
  if (!top) return undefined
  const candidates = top.logprobs.subarray(index * top.width, (index + 1) * top.width)
  let entropy = 0
  let rest = 1
  for (const logprob of candidates) {
    const probability = Math.exp(logprob)
    entropy -= probability * logprob
    rest -= probability
  }
  return rest > 1e-9 ? entropy - rest * Math.log(rest) : entropy
}
