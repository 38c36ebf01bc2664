import { untemperedTokens } from '../../core/tree.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

/**
 * Log-probabilities that are not those of the tempered distribution, said with the first tree: a
 * trainer that divides by them computes ratios of two different distributions.
 */
export function untemperedLogprobs(): Sentinel {
  let isOver = false
  return {
    name: 'untempered-logprobs',
    seeTree(tree): Alarm | undefined {
      if (isOver) return undefined
      const [problem] = untemperedTokens(tree).keys()
      if (problem === undefined) return undefined
      isOver = true
      return {
        message: `log-probabilities are not the tempered ones: ${problem}`,
        likely:
          'ratios from them mean nothing: start vLLM with --logprobs-mode processed_logprobs and say ?logprobs=processed, sample without top-p, top-k and min-p, or let the trainer recompute them',
      }
    },
  }
}
