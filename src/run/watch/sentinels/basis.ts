import { isSampled } from '../../../base/core/segment.ts'
import { untemperedTokens } from '../../../base/core/tree.ts'
import type { Alarm, Sentinel } from './sentinel.ts'

/**
 * Warns with the first tree if a chat server gives texts only, as most hosted models do. Scripted
 * answers have no log-probabilities either, but that is expected.
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
 * Warns with the first tree if log-probabilities are not those of the tempered distribution: a
 * trainer would compute ratios of two different distributions.
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
