import { hasLogprobs, type Tree } from '../../base/core/tree.ts'
import type { MemberRow } from '../rows/row-record.ts'
import { RefusedError } from './format.ts'
import type { LossReport } from './lost.ts'

/**
 * What a trainer is told of the log-probabilities of an attempt: its `numbers`; `none`, in a file without any; or that
 * it is `untrained`, because it has none if others do.
 */
export type Telling = 'numbers' | 'none' | 'untrained'

/**
 * Decides what a file tells of log-probabilities. Trainers take them for all rows or for none, so the first attempt decides;
 * those that differ are counted. With `needing`, the name of a format whose trainer needs them, a first attempt
 * without any is refused.
 */
export function makeTelling(lost: LossReport, needing?: string): (tree: Tree) => Telling {
  let expected: boolean | undefined
  const toldOf = new WeakMap<Tree, Telling>()
  const decide = (tree: Tree): Telling => {
    const has = hasLogprobs(tree)
    if (!has && expected === undefined && needing !== undefined) throw withoutAny(needing, tree)
    expected ??= has
    if (expected && !has) {
      lost.add('attempts without log-probabilities where others have them: not trained')
      return 'untrained'
    }
    if (!expected && has) lost.add('log-probabilities of attempts after a first that has none')
    return expected ? 'numbers' : 'none'
  }
  return tree => {
    const told = toldOf.get(tree) ?? decide(tree)
    toldOf.set(tree, told)
    return told
  }
}

function withoutAny(format: string, tree: Tree): RefusedError {
  return new RefusedError(
    format,
    `it needs log-probabilities, and the policy of ${tree.id} gave none`,
    'Such a run is good for evaluation and supervised rows (--to openai-sft or trl-sft), not for reinforcement learning',
  )
}

/** A row with the log-probabilities that its trainer gets: 0 if nothing is trained. */
export interface NumberedRow {
  readonly member: MemberRow
  /** `null` in a file without any. */
  readonly numbers: Float32Array | null
}

/** A row as it is told: one that is not trained for want of numbers has an empty mask. */
export function numbered(member: MemberRow, telling: Telling): NumberedRow {
  const { row } = member
  if (telling === 'none') return { member, numbers: null }
  const isUntrained = telling === 'untrained'
  return {
    member: isUntrained
      ? { ...member, row: { ...row, mask: new Uint8Array(row.mask.length) } }
      : member,
    numbers: row.logprobs.map(value => (isUntrained || Number.isNaN(value) ? 0 : value)),
  }
}
