import type { Sampling } from './policy.ts'
import { isSampled, type SampledSegment } from './segment.ts'
import type { Tree } from './tree.ts'

/**
 * What stands between recorded log-probabilities and those a trainer computes at the sampling
 * temperature, in words; `undefined` where they are the same.
 */
export function basisProblem(
  { basis, logprobs }: Pick<SampledSegment, 'basis' | 'logprobs'>,
  { temperature, topP, topK, minP }: Sampling,
): string | undefined {
  // What a policy gives no log-probabilities of, and what was sampled greedily, has no ratio.
  if (!logprobs || temperature === 0) return undefined
  const cuts = [
    ...(topP < 1 ? [`top-p ${topP}`] : []),
    ...(topK > 0 ? [`top-k ${topK}`] : []),
    ...(minP > 0 ? [`min-p ${minP}`] : []),
  ]
  if (cuts.length > 0) {
    const from = basis === 'renormalised' ? 'after' : 'without'
    return `drawn with ${cuts.join(' and ')}, log-probabilities ${from} that cut`
  }
  return basis === 'raw' && temperature !== 1
    ? `raw, before the temperature of ${temperature}`
    : undefined
}

/** Sampled tokens of a tree whose log-probabilities are not the tempered ones, by what they are. */
export function untemperedTokens(
  tree: Pick<Tree, 'nodes' | 'sampling'>,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { segment } of tree.nodes) {
    if (!isSampled(segment)) continue
    const problem = basisProblem(segment, tree.sampling)
    if (problem !== undefined) counts.set(problem, (counts.get(problem) ?? 0) + segment.ids.length)
  }
  return counts
}
