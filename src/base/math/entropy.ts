import { checkNumber } from './options.ts'

/** How an entropy bonus steers towards a target. */
export interface EntropyTarget {
  /** Mean entropy per trained token, in nats, that the policy should not fall below. */
  readonly target: number
  /** How far the coefficient moves per step. */
  readonly step: number
  /** The coefficient never exceeds this. */
  readonly maximum: number
}

/** The coefficient as it is kept, and as it is used this step. */
export interface EntropyCoefficient {
  readonly kept: number
  /** 0 while the entropy is above its target: then nothing needs to hold it up. */
  readonly used: number
}

/**
 * Adaptive entropy control (Skywork-OR1, arXiv 2505.22312): the kept coefficient rises by one step
 * while the measured entropy is below its target and falls by one while it is above, within
 * [0, maximum]; it is used only if the entropy is at or below the target.
 */
export function nextEntropyCoefficient(
  kept: number,
  entropy: number,
  { target, step, maximum }: EntropyTarget,
): EntropyCoefficient {
  checkNumber('The measured entropy', entropy, { low: 0 })
  checkNumber('The entropy target', target, { low: 0 })
  checkNumber('The step', step, { low: 0 })
  checkNumber('The maximum', maximum, { low: 0 })
  const moved = kept + step * Math.sign(target - entropy)
  const next = Math.max(0, Math.min(maximum, moved))
  return { kept: next, used: entropy <= target ? next : 0 }
}

/** Entropy −Σ p log p in nats of the distribution that softmax makes of these logits. */
export function entropyOfLogits(logits: ArrayLike<number>): number {
  let largest = Number.NEGATIVE_INFINITY
  for (let index = 0; index < logits.length; index++) largest = Math.max(largest, logits[index]!)
  let total = 0
  let weighted = 0
  for (let index = 0; index < logits.length; index++) {
    const shifted = logits[index]! - largest
    const share = Math.exp(shifted)
    total += share
    if (share > 0) weighted += share * shifted
  }
  return Math.log(total) - weighted / total
}

/**
 * ARPO's chance to fork after a tool's answer: clip(τ + w · ΔH, 0, 1), with ΔH the rise of the normalised
 * entropy over its first value in the same rollout (Dong et al. 2025, arXiv 2507.19849).
 */
export function branchProbability(
  entropyRise: number,
  { base, weight }: { readonly base: number; readonly weight: number },
): number {
  checkNumber('The entropy rise', entropyRise)
  return Math.max(0, Math.min(1, base + weight * entropyRise))
}
