import { isSampled } from '../../core/segment.ts'
import { untemperedTokens } from '../../core/tree.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

/**
 * A chat server that gives texts alone, said with the first tree: most hosted models do. Answers that
 * were written beforehand have no log-probabilities either, and nobody expects them to.
 */
export function noLogprobs(): Sentinel {
  let isOver = false
  return {
    name: 'no-logprobs',
    seeTree(tree): Alarm | undefined {
      if (isOver) return undefined
      const sampled = tree.nodes.map(({ segment }) => segment).filter(isSampled)
      if (sampled.length === 0) return undefined
      isOver = true
      if (tree.trajectories.every(({ fidelity }) => fidelity.kind !== 're-encoded'))
        return undefined
      if (sampled.some(({ logprobs }) => logprobs?.some(value => !Number.isNaN(value))))
        return undefined
      return {
        message: 'the policy gives no log-probabilities, so rows have none',
        likely:
          'a chat server that returns no token ids: good for evaluation and supervised rows (export --to openai-sft), not for reinforcement learning; for that use sglang:, vllm: or llama-cpp:',
      }
    },
  }
}

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
