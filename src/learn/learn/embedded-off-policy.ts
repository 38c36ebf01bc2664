import type { Row } from '../../base/core/row.ts'
import { offsetsOf } from '../../base/math/batch.ts'
import { mismatch, mismatchByPart } from '../../base/math/mismatch.ts'
import { mean } from '../../base/math/statistics.ts'
import { readImportance, weighs } from '../../engine/weigh/importance.ts'
import type { MemberRow } from '../../run/rows/row-record.ts'
import { turnMismatch } from '../../run/watch/sentinels/mismatch.ts'
import { type Lesson, laidOut, type SampledRow, type ScoredRows, scoreRow } from '../model/learn.ts'
import type { EmbeddedModel } from '../model/model.ts'
import { importanceOf } from './off-policy.ts'

/** How the embedded trainer treats samples from other weights. */
export interface OffPolicySettings {
  readonly proximal: 'recorded' | 'recompute'
  readonly importance: readonly string[]
}

/** A batch as it was made, and where its rows came from. */
interface Made {
  readonly made: Lesson
  readonly members: readonly MemberRow[]
}

/** Weighs a batch against what sampled it; with `recompute`, ratios start from the weights before learning. */
export async function offPolicy(
  model: EmbeddedModel,
  { made, members }: Made,
  { settings, signal }: { readonly settings: OffPolicySettings; readonly signal: AbortSignal },
): Promise<{ readonly lesson: Lesson; readonly measured: Record<string, number> }> {
  const proximal =
    settings.proximal === 'recompute' ? await proximalOf(model, made.rows, signal) : undefined
  const rows = made.rows.map((row, index) =>
    proximal ? { ...row, proximal: proximal[index]! } : row,
  )
  const off = readImportance(settings.importance)
  if (!weighs(off)) return { lesson: { ...made, rows }, measured: {} }
  const { weights, bounded } = importanceOf(made.paths, off, {
    recorded: laidOut(made.rows.map(({ logprobs }) => logprobs)),
    proximal: proximal && laidOut(proximal),
    versions: laidOut(
      members.map(({ row }, index) => versionsOf(row, made.rows[index]!.ids.length)),
    ),
    current: model.version(),
  })
  return {
    lesson: { ...made, rows, paths: { ...made.paths, importance: weights } },
    measured: { importanceMean: mean(weights), importanceBounded: bounded },
  }
}

async function proximalOf(
  model: EmbeddedModel,
  rows: readonly SampledRow[],
  signal: AbortSignal,
): Promise<readonly Float32Array[]> {
  const scores = await Promise.all(rows.map(row => scoreRow(model, row, signal)))
  return scores.map(({ logprobs }) => logprobs)
}

/** The oldest version that can have sampled each of the first tokens of a row. */
function versionsOf({ versions }: Row, length: number): Float32Array {
  const all = new Float32Array(length)
  for (const { start, end, value } of versions) all.fill(value.from, start, Math.min(end, length))
  return all
}

/** How far the weights before learning are from those that sampled; uses the first forward pass of learning itself. */
export function mismatchMetrics({ rows, logprobs }: ScoredRows): Record<string, number> {
  const engines = {
    offsets: offsetsOf(rows.map(({ ids }) => ids.length)),
    trajectory: Int32Array.from(rows, (_, row) => row),
    mask: Uint8Array.from(rows.flatMap(({ mask }) => [...mask])),
    rolloutLogprobs: laidOut(rows.map(row => row.logprobs)),
    trainerLogprobs: logprobs,
  }
  const found = mismatch(engines)
  const byTurn = mismatchByPart(engines, turnsOf(rows))
  return {
    mismatchKl: found.kl,
    mismatchRatioLow: found.ratio.low,
    mismatchRatioMedian: found.ratio.median,
    mismatchRatioHigh: found.ratio.high,
    mismatchEffectiveSampleShare: found.effectiveSampleShare,
    ...(byTurn.length > 1 &&
      Object.fromEntries(byTurn.map((kl, turn) => [turnMismatch(turn), kl]))),
  }
}

/** So many turns are measured by themselves; the last of them stands for all later ones too. */
const turnsApart = 8

/** The turn that sampled each token of rows laid end to end, from 0 on. */
function turnsOf(rows: readonly SampledRow[]): Int32Array {
  const turns = rows.map(({ ids, origins }) => {
    const own = new Int32Array(ids.length)
    const sampled = origins.filter(({ value }) => value === 'sampled')
    for (const [turn, { start, end }] of sampled.entries()) {
      own.fill(Math.min(turn, turnsApart - 1), start, end)
    }
    return own
  })
  return Int32Array.from(turns.flatMap(own => [...own]))
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
