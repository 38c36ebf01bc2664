import type { TrajectoryId } from '../../base/core/ids.ts'
import type { Row } from '../../base/core/row.ts'
import { offsetsOf } from '../../base/math/batch.ts'
import type { TokenPaths } from '../../base/math/paths.ts'

/** A row whose tokens are laid end to end with those of others. */
export interface PathRow {
  readonly row: Pick<Row, 'passages' | 'importance'>
  /** How many of its tokens are laid there, all trained ones among them. */
  readonly length: number
  /** Added to the advantage of tokens. */
  readonly bonus?: RowBonus
}

/** A bonus on the advantage of a row's tokens, and which trajectories through them get it. */
export interface RowBonus {
  readonly values: Float64Array
  readonly trajectories: ReadonlySet<TrajectoryId>
}

/** The trajectories of rows as paths over their tokens, and which row named each first. */
export interface RowPaths {
  readonly paths: TokenPaths
  /** Per path: the first row that trains a token of it. */
  readonly firstRow: Int32Array
}

/**
 * The trajectories that pass through rows of the form `once`, as paths over the rows' tokens laid end
 * to end, in the order in which rows name them.
 */
export function pathsOf(rows: readonly PathRow[]): RowPaths {
  const starts = offsetsOf(rows.map(({ length }) => length))
  const known = countEntries(rows)
  const all = [...known.values()]
  const offsets = offsetsOf(all.map(({ entries }) => entries))
  const size = offsets.at(-1)!
  const tokens = new Int32Array(size)
  const advantages = new Float64Array(size)
  const weights = new Float64Array(size)
  const isWeighed = rows.some(({ row }) => row.importance !== undefined)
  const importance = new Float64Array(isWeighed ? size : 0)
  const next = offsets.slice()
  rows.forEach(({ row, bonus }, index) => {
    for (const { start, end, value } of row.passages) {
      for (const { trajectory, advantage, share, importance: factor = 1 } of value) {
        const { path } = known.get(trajectory)!
        const isGiven = bonus?.trajectories.has(trajectory)
        for (let token = start; token < end; token++) {
          const entry = next[path]!++
          tokens[entry] = starts[index]! + token
          advantages[entry] = advantage + (isGiven ? bonus!.values[token]! : 0)
          weights[entry] = share
          if (isWeighed) importance[entry] = factor * (row.importance?.[token] ?? 1)
        }
      }
    }
  })
  const paths: TokenPaths = {
    offsets,
    mask: new Uint8Array(size).fill(1),
    trajectory: Int32Array.from(all, ({ path }) => path),
    trajectoryWeights: Float64Array.from(all, ({ weight }) => weight),
    tokens,
    advantages,
    weights,
    ...(isWeighed && { importance }),
  }
  return { paths, firstRow: Int32Array.from(all, ({ firstRow }) => firstRow) }
}

interface Known {
  readonly path: number
  readonly weight: number
  readonly firstRow: number
  entries: number
}

function countEntries(rows: readonly PathRow[]): ReadonlyMap<string, Known> {
  const known = new Map<string, Known>()
  rows.forEach(({ row }, firstRow) => {
    for (const { start, end, value } of row.passages) {
      for (const { trajectory, weight } of value) {
        let found = known.get(trajectory)
        if (!found) {
          found = { path: known.size, weight, firstRow, entries: 0 }
          known.set(trajectory, found)
        }
        found.entries += end - start
      }
    }
  })
  return known
}
