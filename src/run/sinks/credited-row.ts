import type { Passage } from '../../base/core/credit.ts'
import type { Row } from '../../base/core/row.ts'
import { isTrained, type MemberRow } from '../rows/row-record.ts'

/**
 * A row for trainers with one advantage per row: all its trained tokens have the same credit, which is
 * advantage times weight. That is exact: `weight` times a token's clipped policy loss equals the loss
 * with `weight` times its advantage.
 */
export interface CreditedRow extends MemberRow {
  readonly mask: Uint8Array
  readonly credit: number
  /** Whether it is trained at all; failed and filtered trajectories are not. */
  readonly isTrained: boolean
}

/**
 * Splits a row by credit: one row for each value, in which the other tokens are context. Each token is
 * still trained once, and a trainer with one advantage per row computes the same gradient. Most rows
 * have one value and stay whole.
 */
export function splitByCredit(source: MemberRow): readonly CreditedRow[] {
  const { row, member } = source
  if (!isTrained(member) || !row.mask.includes(1)) {
    const mask = new Uint8Array(row.mask.length)
    return [{ ...source, mask, credit: 0, isTrained: false }]
  }
  const masks = new Map<number, Uint8Array>()
  const worth = worthOf(row)
  for (let token = 0; token < row.mask.length; token++) {
    if (row.mask[token] === 0) continue
    const credit = worth[token]!
    let mask = masks.get(credit)
    if (!mask) {
      mask = new Uint8Array(row.mask.length)
      masks.set(credit, mask)
    }
    mask[token] = 1
  }
  return [...masks].map(([credit, mask]) => ({ ...source, mask, credit, isTrained: true }))
}

/** How many tokens come before the first that the policy sampled. */
export function promptLength({ row }: MemberRow): number {
  return row.origins.find(({ value }) => value === 'sampled')?.start ?? row.ids.length
}

/** The credit of each token of a row: advantage times weight and importance, 0 if it is not trained. */
export function tokenCredit({ row, member }: MemberRow): Float64Array {
  return isTrained(member) ? worthOf(row) : new Float64Array(row.ids.length)
}

function worthOf(row: Row): Float64Array {
  const worth = new Float64Array(row.ids.length)
  for (let token = 0; token < worth.length; token++) {
    if (row.mask[token] === 1) worth[token] = row.advantages[token]! * row.weights[token]!
  }
  const { importance } = row
  if (!importance) return worth
  for (const { start, end, value } of row.passages) {
    const sum = passagesWorth(value)
    for (let token = start; token < end; token++) worth[token] = sum * importance[token]!
  }
  return worth
}

/** The total credit of a token over all trajectories through it, each with its own importance. */
export function passagesWorth(passages: readonly Passage[]): number {
  return passages.reduce(
    (sum, { advantage, weight, share, importance = 1 }) =>
      sum + advantage * weight * share * importance,
    0,
  )
}

/** The importance weights of a row that one trajectory trains; `undefined` if nothing is weighed. */
export function rowImportance({ importance, passages }: Row): Float64Array | undefined {
  if (!importance) return undefined
  const own = importance.slice()
  for (const { start, end, value } of passages) {
    const { importance: factor = 1 } = value[0]!
    for (let token = start; token < end; token++) own[token]! *= factor
  }
  return own
}

/** The mask of a row's trained tokens; all 0 for trajectories that are only looked at. */
export function trainedMask({ row, member }: MemberRow): Uint8Array {
  return isTrained(member) ? row.mask : new Uint8Array(row.mask.length)
}
