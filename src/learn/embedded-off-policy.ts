import type { Row } from '../core/row.ts'
import { offsetsOf } from '../math/batch.ts'
import { mismatch } from '../math/mismatch.ts'
import { mean } from '../math/statistics.ts'
import { type Lesson, laidOut, type SampledRow, scoreRow } from '../model/learn.ts'
import type { EmbeddedModel } from '../model/model.ts'
import type { MemberRow } from '../sinks/row-record.ts'
import { importanceOf, readImportance } from './off-policy.ts'

/** How the embedded trainer meets samples of other weights. */
export interface OffPolicySettings {
  readonly proximal: 'recorded' | 'recompute'
  readonly importance: readonly string[]
}

/** A batch as it was made: what is learned from, the rows that teach something, and where they came from. */
interface Made {
  readonly made: Lesson
  readonly trained: readonly SampledRow[]
  readonly members: readonly MemberRow[]
}

/** Rows whose mismatch is measured where nothing else needs them scored before learning. */
const measuredBefore = 8

/** What the weights before learning say of the rows: how far they are from what sampled, and weights against it. */
export async function offPolicy(
  model: EmbeddedModel,
  { made, trained, members }: Made,
  { settings, signal }: { readonly settings: OffPolicySettings; readonly signal: AbortSignal },
): Promise<{ readonly lesson: Lesson; readonly measured: Record<string, number> }> {
  const isRecomputed = settings.proximal === 'recompute'
  const some = isRecomputed ? made.rows : trained.slice(0, measuredBefore)
  const scores = await Promise.all(some.map(row => scoreRow(model, row, signal)))
  const proximal = scores.map(({ logprobs }) => logprobs)
  const measured = mismatchMetrics(some, proximal)
  const rows = isRecomputed
    ? made.rows.map((row, index) => ({ ...row, proximal: proximal[index]! }))
    : made.rows
  const off = readImportance(settings.importance)
  if (off.ratios.length === 0 && !off.staleness) return { lesson: { ...made, rows }, measured }
  const { weights, bounded } = importanceOf(made.paths, off, {
    recorded: laidOut(made.rows.map(({ logprobs }) => logprobs)),
    proximal: isRecomputed ? laidOut(proximal) : undefined,
    versions: laidOut(
      members.map(({ row }, index) => versionsOf(row, made.rows[index]!.ids.length)),
    ),
    current: model.version(),
  })
  return {
    lesson: { ...made, rows, paths: { ...made.paths, importance: weights } },
    measured: { ...measured, importanceMean: mean(weights), importanceBounded: bounded },
  }
}

/** The oldest version that can have sampled each of the first tokens of a row. */
function versionsOf({ versions }: Row, length: number): Float32Array {
  const all = new Float32Array(length)
  for (const { start, end, value } of versions) all.fill(value.from, start, Math.min(end, length))
  return all
}

/** How far the weights before learning are from what sampled. */
function mismatchMetrics(
  rows: readonly SampledRow[],
  scored: readonly Float32Array[],
): Record<string, number> {
  const found = mismatch({
    offsets: offsetsOf(rows.map(({ ids }) => ids.length)),
    trajectory: Int32Array.from(rows, (_, row) => row),
    mask: Uint8Array.from(rows.flatMap(({ mask }) => [...mask])),
    rolloutLogprobs: laidOut(rows.map(({ logprobs }) => logprobs)),
    trainerLogprobs: laidOut(scored),
  })
  return {
    mismatchKl: found.kl,
    mismatchRatioLow: found.ratio.low,
    mismatchRatioMedian: found.ratio.median,
    mismatchRatioHigh: found.ratio.high,
    mismatchEffectiveSampleShare: found.effectiveSampleShare,
  }
}

/** The log-probabilities of the policy to stay near to, row by row. */
export async function referenceOf(
  reference: EmbeddedModel | 'scored',
  {
    members,
    rows,
    signal,
  }: { members: readonly MemberRow[]; rows: readonly SampledRow[]; signal: AbortSignal },
): Promise<readonly Float32Array[]> {
  if (reference !== 'scored') {
    const scored = await Promise.all(rows.map(row => scoreRow(reference, row, signal)))
    return scored.map(({ logprobs }) => logprobs)
  }
  return members.map(({ row }, index) => {
    const own = row.others.reference?.subarray(0, rows[index]!.ids.length)
    if (own && !own.some((value, token) => row.mask[token] === 1 && Number.isNaN(value))) return own
    throw new Error(`${row.trajectory.id} has no log-probabilities of the reference`)
  })
}
