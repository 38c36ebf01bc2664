import type { Alarm, Sentinel } from './sentinel.ts'

/** Above these, trainer and sampler are different policies; the KL is a tenth of PPO's usual step. */
const most = { kl: 0.02, lost: 0.3 }

/** The metric that says how far trainer and sampler are apart in a turn, from 0 on. */
export const turnMismatch = (turn: number): string => `mismatchKl/turn-${turn + 1}`

/** How far trainer and sampler were apart turn by turn; empty if attempts have one. */
export function turnMismatches(metrics: Readonly<Record<string, number>>): readonly number[] {
  const found: number[] = []
  for (let turn = 0; metrics[turnMismatch(turn)] !== undefined; turn++) {
    found.push(metrics[turnMismatch(turn)]!)
  }
  return found
}

/** Where the difference is, if one turn has far more of it than the tokens on average. */
function worstTurn(metrics: Readonly<Record<string, number>>, kl: number): string {
  const turns = turnMismatches(metrics)
  const worst = Math.max(...turns)
  return worst > 2 * kl ? `, most in turn ${turns.indexOf(worst) + 1} with ${worst.toFixed(4)}` : ''
}

/** Warns if the log-probabilities of trainer and sampler are far apart. */
export function engineMismatch(): Sentinel {
  let isOver = false
  return {
    name: 'engine-mismatch',
    seeStep(metrics): Alarm | undefined {
      const { mismatchKl: kl = 0, mismatchEffectiveSampleShare: share = 1 } = metrics
      if (isOver || (kl <= most.kl && share >= 1 - most.lost)) return undefined
      isOver = true
      return {
        message:
          `the weights that learn are ${kl.toFixed(4)} nats per token from those that sampled${worstTurn(metrics, kl)} ` +
          `(${Math.round(share * 100)} % of the samples are left when they are weighed)`,
        likely:
          'samples are old, or another engine or precision drew them: --proximal recompute with --importance token, a smaller --max-staleness, or log-probabilities that are the tempered ones',
      }
    },
  }
}
