import type { MemberRow } from '../../run/rows/row-record.ts'
import { trainedMask } from '../../run/sinks/credited-row.ts'

/** The wanted mean, and what the trainer does by itself. */
export interface FactorOptions {
  /** What is averaged: all tokens alike, or each trajectory's own first. */
  readonly mean: 'tokens' | 'sequences'
  /**
   * What the trainer itself divides a row's sum by: nothing, the row's length, or the number of its
   * trained tokens.
   */
  readonly divides: 'nothing' | 'rows' | 'trained'
}

/**
 * The factor for each row's advantages with which a plain sum over the tokens of `paths` rows is the
 * wanted mean, up to one factor for the whole batch: advantages keep the size they have in a mean over
 * tokens. This works because every policy loss is proportional to its advantage.
 */
export function rowFactors(rows: readonly MemberRow[], options: FactorOptions): readonly number[] {
  const { mean, divides } = options
  const lengths = new Map<string, { tokens: number; weight: number }>()
  for (const { row } of rows) {
    const own = lengths.get(row.trajectory.id) ?? { tokens: 0, weight: 0 }
    for (const { start, end, value } of row.passages) {
      own.tokens += (end - start) * value[0]!.share
      own.weight = value[0]!.weight
    }
    lengths.set(row.trajectory.id, own)
  }
  const all = [...lengths.values()]
  const tokens = all.reduce((sum, own) => sum + own.weight * own.tokens, 0)
  const sequences = all.reduce((sum, own) => sum + (own.tokens > 0 ? own.weight : 0), 0)
  const divided = rows.map(member => divisorOf(member, divides))
  const usual = divided.reduce((sum, each) => sum + each, 0) / rows.length
  return rows.map(({ row }, index) => {
    const own = lengths.get(row.trajectory.id)!.tokens
    const towardsMean = mean === 'tokens' || own === 0 ? 1 : tokens / sequences / own
    return towardsMean * (usual === 0 ? 1 : divided[index]! / usual)
  })
}

function divisorOf(member: MemberRow, divides: FactorOptions['divides']): number {
  if (divides === 'nothing') return 1
  const { ids, logprobs } = member.row
  if (divides === 'rows') return ids.length - 1
  return trainedMask(member).reduce(
    (sum, bit, token) => sum + (token > 0 && bit === 1 && !Number.isNaN(logprobs[token]) ? 1 : 0),
    0,
  )
}
