import type { Sampling } from '../../../base/core/policy.ts'
import { isSampled } from '../../../base/core/segment.ts'
import { untemperedTokens } from '../../../base/core/tree.ts'
import type { Alarm, Sentinel, SentinelContext } from './sentinel.ts'

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
export function untemperedLogprobs({ policy = '' }: SentinelContext): Sentinel {
  let isOver = false
  return {
    name: 'untempered-logprobs',
    seeTree(tree): Alarm | undefined {
      if (isOver) return undefined
      const sampled = tree.nodes.map(({ segment }) => segment).filter(isSampled)
      // Numbers after the cuts are those of what was drawn from, as ratios need them.
      if (sampled.every(({ basis }) => basis === 'renormalised')) return undefined
      const [problem] = untemperedTokens(tree).keys()
      if (problem === undefined) return undefined
      isOver = true
      return {
        message: `log-probabilities are not the tempered ones: ${problem}`,
        likely: `ratios from them mean nothing: ${remedyOf(policy, tree.sampling)}, or let the trainer recompute them`,
      }
    },
  }
}

/** What to do about it, by the kind of server. */
function remedyOf(policy: string, { temperature }: Sampling): string {
  if (policy.startsWith('vllm:')) return 'start vLLM with --logprobs-mode processed_logprobs'
  if (policy.startsWith('sglang:') && temperature !== 1) {
    return 'start SGLang without SGLANG_RETURN_ORIGINAL_LOGPROB'
  }
  return 'sample at temperature 1 without top-p, top-k and min-p'
}
