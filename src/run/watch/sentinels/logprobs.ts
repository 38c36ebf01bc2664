import type { Sampling } from '../../../base/core/policy.ts'
import { isSampled, type SampledSegment } from '../../../base/core/segment.ts'
import type { Alarm, Sentinel, SentinelContext } from './sentinel.ts'

const enough = 2000
/** Standard deviations; chance alone reaches them once in a billion runs. */
const beyond = 6

/**
 * Warns if the sampled tokens cannot have been drawn from their log-probabilities. If a token is drawn
 * from p, −log p(token) − H(p) and [token is the best] − p(best) both have mean zero; their sums over
 * their standard deviation distinguish a wrong temperature or basis from chance.
 */
export function oddLogprobs({ isOurs = false }: SentinelContext): Sentinel {
  const surprise = makeDrift()
  const best = makeDrift()
  let tokens = 0
  let zeros = 0
  // What the embedded model reports is what it drew from.
  let isOver = isOurs
  return {
    name: 'odd-logprobs',
    seeTree(tree): Alarm | undefined {
      if (isOver || !isPlain(tree.sampling)) return undefined
      for (const { segment } of tree.nodes) {
        if (!isSampled(segment) || !segment.logprobs || segment.basis !== 'tempered') continue
        tokens += segment.ids.length
        zeros += zerosIn(segment.logprobs)
        addSurprise(surprise, segment)
        addBest(best, segment)
      }
      const alarm = judge(tree.sampling, { tokens, zeros, surprise, best })
      if (alarm) isOver = true
      return alarm
    },
  }
}

/** By index, because this runs for every token and an iterator would allocate an object each. */
function zerosIn(logprobs: Float32Array): number {
  let zeros = 0
  for (let at = 0; at < logprobs.length; at++) if (logprobs[at] === 0) zeros++
  return zeros
}

/** Only the whole distribution has these means. */
function isPlain({ temperature, topP, topK, minP }: Sampling): boolean {
  return temperature > 0 && topP === 1 && topK === 0 && minP === 0
}

function makeDrift() {
  return { sum: 0, squares: 0, count: 0 }
}

type Drift = ReturnType<typeof makeDrift>

function add(drift: Drift, value: number): void {
  drift.sum += value
  drift.squares += value * value
  drift.count++
}

function addSurprise(drift: Drift, { logprobs, entropies }: SampledSegment): void {
  if (!logprobs || !entropies) return
  for (const [index, logprob] of logprobs.entries())
    if (!Number.isNaN(logprob)) add(drift, -logprob - entropies[index]!)
}

function addBest(drift: Drift, { ids, top }: SampledSegment): void {
  if (!top || top.width === 0) return
  for (const [index, id] of ids.entries()) {
    const at = index * top.width
    add(drift, Number(id === top.ids[at]) - Math.exp(top.logprobs[at]!))
  }
}

function scoreOf({ sum, squares, count }: Drift): number {
  return count < enough || squares === 0 ? 0 : sum / Math.sqrt(squares)
}

interface Seen {
  readonly tokens: number
  readonly zeros: number
  readonly surprise: Drift
  readonly best: Drift
}

function judge(
  { temperature }: Sampling,
  { tokens, zeros, surprise, best }: Seen,
): Alarm | undefined {
  if (tokens >= enough && zeros > tokens * 0.999) {
    return {
      message: `${zeros} of ${tokens} log-probabilities are 0 at temperature ${temperature}`,
      likely:
        'the server decodes greedily, or reports probabilities after top-k or top-p: importance ratios from them mean nothing; check its sampling defaults with espalier doctor --policy',
    }
  }
  const drift = [scoreOf(surprise), scoreOf(best)].find(score => Math.abs(score) > beyond)
  if (drift === undefined) return undefined
  return {
    message: `log-probabilities do not fit what was sampled at temperature ${temperature} (${drift.toFixed(1)} standard deviations over ${tokens} tokens)`,
    likely:
      'the server ignores the temperature, or reports log-probabilities of another one: check its --logprobs-mode and sampling defaults with espalier doctor --policy',
  }
}
