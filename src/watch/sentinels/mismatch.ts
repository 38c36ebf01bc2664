import type { Alarm, Sentinel } from './sentinel.ts'

/** From here on what learns and what sampled are different policies: a tenth of the usual step of PPO. */
const most = { kl: 0.02, lost: 0.3 }

/** Training against sampling log-probabilities that are far apart: what is learned is not what was sampled. */
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
