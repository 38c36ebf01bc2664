import { isSampled } from '../../base/core/segment.ts'
import type { Tree } from '../../base/core/tree.ts'

/** How far the scores of tokens behind other prompts are from the log-probabilities they were sampled with. */
export interface Distance {
  /** Tokens that have both numbers. */
  readonly tokens: number
  /** Means of two estimates of KL(sampled ‖ scored): log r negated, and r − 1 − log r, r = scored / sampled. */
  readonly k1: number
  readonly k3: number
  /** The share of tokens at least twice or at most half as likely now. */
  readonly far: number
}

/** Adds up that distance over trees that `proximal` has scored. */
export function makeDistance(): { add(tree: Tree): void; read(): Distance } {
  const sums = { tokens: 0, k1: 0, k3: 0, far: 0 }
  return {
    add({ nodes }) {
      for (const { segment } of nodes) {
        if (!isSampled(segment) || !segment.logprobs) continue
        for (const [token, sampled] of segment.logprobs.entries()) {
          const d = (segment.others?.proximal?.[token] ?? Number.NaN) - sampled
          if (Number.isNaN(d)) continue
          sums.tokens++
          sums.k1 -= d
          sums.k3 += Math.expm1(d) - d
          if (Math.abs(d) >= Math.LN2) sums.far++
        }
      }
    },
    read() {
      const { tokens, k1, k3, far } = sums
      const count = Math.max(1, tokens)
      return { tokens, k1: k1 / count, k3: k3 / count, far: far / count }
    },
  }
}
