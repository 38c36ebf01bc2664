import type { Alarm, Sentinel } from './sentinel.ts'

/** Above these, trainer and sampler are different policies; the KL is a tenth of PPO's usual step. */
const most = { kl: 0.02, lost: 0.3 }

/** Warns if the log-probabilities of trainer and sampler are far apart. */
export function engineMismatch(): Sentinel {
  let isOver = false
  return {
    name: 'engine-mismatch',
    seeStep({ mismatchKl: kl = 0, mismatchEffectiveSampleShare: share = 1 }): Alarm | undefined {
      if (isOver || (kl <= most.kl && share >= 1 - most.lost)) return undefined
      isOver = true
      return {
        message:
          `the weights that learn are ${kl.toFixed(4)} nats per token from those that sampled ` +
          `(${Math.round(share * 100)} % of the samples are left when they are weighed)`,
        likely:
          'samples are old, or another engine or precision drew them: --proximal recompute with --importance token, a smaller --max-staleness, or log-probabilities that are the tempered ones',
      }
    },
  }
}
