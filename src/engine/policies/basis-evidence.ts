import type { TokenSample } from '../../base/core/policy.ts'
import { mean } from '../../base/math/statistics.ts'

/** Which distribution a server's numbers are of, at another temperature than 1: that of temperature 1, or the one it samples from. */
export type LogprobKind = 'raw' | 'processed'

/** How well each hypothesis about a server's numbers explains the tokens that were drawn and scored again. */
export interface BasisEvidence {
  readonly verdict: LogprobKind | 'undecided'
  /** Tokens that were compared. */
  readonly tokens: number
  /** How far the numbers are, on average, from what the scores say if they are raw. */
  readonly raw: number
  /** The same if they are processed; undefined if the server lists no candidates to tell it by. */
  readonly processed: number | undefined
}

/** One token's distance from each hypothesis. */
export interface Compared {
  readonly raw: number
  readonly processed: number | undefined
}

/** Fewer tokens prove nothing. */
export const enoughTokens = 24
/** The worse hypothesis is so many times farther off than the better one, */
const timesFarther = 2.5
/** and by so many standard errors of the mean difference between the two. */
const standardErrors = 4
/** Without candidates, only whether numbers are raw can be measured: beyond what is usual at any precision they are not. */
const beyondPrecision = 0.4

/**
 * Compares a sample drawn at `temperature` with its scores at temperature 1 under both hypotheses. The
 * number of a token at temperature 1 follows from its number and its candidates' at the temperature:
 * with a power that makes the likely ones weigh most, the listed candidates are nearly all of the sum.
 */
export function compareDrawn(
  { segment }: TokenSample,
  scores: Float32Array,
  temperature: number,
): readonly Compared[] {
  const { ids, logprobs, top } = segment
  if (!logprobs) return []
  const compared: Compared[] = []
  for (const [at, score] of scores.entries()) {
    const drawn = logprobs[at]!
    const raw = Math.abs(drawn - score)
    if (Number.isNaN(raw)) continue
    const others = top && top.width > 0 ? candidatesAt(top, at, ids[at]!) : undefined
    const implied = others && implyRaw(drawn, others, temperature)
    compared.push({ raw, processed: implied === undefined ? undefined : Math.abs(implied - score) })
  }
  return compared
}

/** The log-probabilities of the listed candidates, without the drawn token itself. */
function candidatesAt(
  top: NonNullable<TokenSample['segment']['top']>,
  at: number,
  drawn: number,
): readonly number[] {
  const listed: number[] = []
  for (let index = at * top.width; index < (at + 1) * top.width; index++) {
    if (top.ids[index] !== drawn && top.logprobs[index]! > -1000) listed.push(top.logprobs[index]!)
  }
  return listed
}

/**
 * A token's number at temperature 1, from numbers at another temperature. Candidates that are not listed
 * are each less likely than the last that is, so what they add lies between nothing and a bound: half of it.
 */
function implyRaw(drawn: number, others: readonly number[], temperature: number): number {
  const listed = [drawn, ...others]
  const sum = listed.reduce((all, each) => all + Math.exp(each * temperature), 0)
  const missing = Math.max(0, 1 - listed.reduce((all, each) => all + Math.exp(each), 0))
  const least = others.length === 0 ? 0 : Math.exp(Math.min(...others))
  return drawn * temperature - Math.log(sum + (missing * least ** (temperature - 1)) / 2)
}

/** Weighs the hypotheses; `noise` is how far numbers and scores are apart on average at temperature 1, where both agree. */
export function weighBasis(compared: readonly Compared[], noise: number): BasisEvidence {
  const tokens = compared.length
  if (tokens === 0) return { verdict: 'undecided', tokens, raw: 0, processed: undefined }
  const raw = mean(compared.map(each => each.raw))
  const both = compared.flatMap(each =>
    each.processed === undefined ? [] : [{ ...each, processed: each.processed }],
  )
  if (both.length < tokens) {
    const verdict = tokens < enoughTokens ? 'undecided' : withoutCandidates(raw, noise)
    return { verdict, tokens, raw, processed: undefined }
  }
  const processed = mean(both.map(each => each.processed))
  return { verdict: verdictOf(both, { raw, processed }), tokens, raw, processed }
}

function verdictOf(
  both: readonly { readonly raw: number; readonly processed: number }[],
  { raw, processed }: { readonly raw: number; readonly processed: number },
): BasisEvidence['verdict'] {
  if (both.length < enoughTokens) return 'undecided'
  const differences = both.map(each => each.processed - each.raw)
  const apart = mean(differences)
  const variance = mean(differences.map(each => (each - apart) ** 2))
  const error = Math.sqrt(variance / (both.length - 1))
  const [near, far] = raw < processed ? [raw, processed] : [processed, raw]
  if (far < near * timesFarther || Math.abs(apart) < standardErrors * error) return 'undecided'
  return raw < processed ? 'raw' : 'processed'
}

/** Numbers as close to their scores as at temperature 1 are raw; those far beyond it are not. */
function withoutCandidates(raw: number, noise: number): BasisEvidence['verdict'] {
  if (raw <= 3 * noise + 1e-3) return 'raw'
  return raw > beyondPrecision && raw > 6 * noise ? 'processed' : 'undecided'
}
