import type { MemberRow } from '../sinks/row-record.ts'

/** How a trainer that only sums differs from the loss that is wanted. */
export interface FactorOptions {
  /** What is averaged: all tokens alike, or each trajectory's own first. */
  readonly mean: 'tokens' | 'sequences'
  /** What the trainer divides a row's sum by of its own accord: nothing, or the row's length. */
  readonly divides: 'nothing' | 'rows'
}

/**
 * What the advantages of each row are multiplied by, so that a plain sum over the tokens of rows of the
 * form `paths` is the wanted mean, up to one factor for the whole batch: advantages keep the size they
 * have in a mean over tokens. Every policy loss is proportional to the size of its advantage.
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
  const targets = rows.reduce((sum, { row }) => sum + row.ids.length - 1, 0) / rows.length
  return rows.map(({ row }) => {
    const own = lengths.get(row.trajectory.id)!.tokens
    const towardsMean = mean === 'tokens' || own === 0 ? 1 : tokens / sequences / own
    return towardsMean * (divides === 'nothing' ? 1 : (row.ids.length - 1) / targets)
  })
}
