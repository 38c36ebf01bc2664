import type { Row } from '../../../base/core/row.ts'
import { isUnscored } from '../../rows/row-record.ts'
import { type CreditedRow, promptLength, splitByCredit } from '../credited-row.ts'
import type { ExportGroup } from '../format.ts'
import { rowsFor, type Training } from '../forms.ts'
import { imageFiles, refuseLaterImages } from '../images.ts'
import { lineFormat } from '../line-format.ts'
import { makeTelling, numbered } from '../numbers.ts'

const training: Training = {
  form: 'paths',
  because: 'TRL computes its loss row by row, with one advantage per row',
  sequence: 'row',
  cuts: true,
  importance: 'age',
}

/**
 * What TRL's `rollout_func` returns, one row per line, and what `RolloutSample` of its asynchronous
 * GRPO holds (trl/trainer/grpo_trainer.py and trl/experimental/async_grpo, 1.10.0.dev0). The first
 * computes advantages from rewards by position, `num_generations` at a time, so only groups of
 * equal size with one row per trajectory may go that way; the second takes our advantage as it is.
 */
export const trl = lineFormat({
  name: 'trl',
  summary: "TRL's rollout_func fields and RolloutSample, one row per line",
  carries: ['tokens', 'advantages', 'rewards', 'reward parts', 'messages', 'images'],
  training,
  comparesRewards: true,
  start({ lost, imageFile, ...options }) {
    lost.note(
      'GRPOTrainer (rollout_func) compares rewards itself and ignores our advantages; AsyncGRPOTrainer takes ours',
    )
    const telling = makeTelling(lost, 'trl')
    return function* toRows(source: ExportGroup) {
      for (const each of rowsFor({ name: 'trl', training }, source.group, { ...options, lost })) {
        refuseLaterImages('trl', each)
        const images = imageFiles(each.row, imageFile)
        const { member, numbers } = numbered(each, telling(each.tree))
        const parts = splitByCredit(member)
        lost.add('rows split because their tokens are worth different things', parts.length - 1)
        for (const [part, each] of parts.entries()) {
          const row = toRow(source, each, { part, parts: parts.length, numbers: numbers! })
          yield { ...row, images }
        }
      }
    }
  },
  loading: file => [
    'python:  from espalier_trl import replay, reward   # PYTHONPATH=integrations/python of this package',
    `         trainer = GRPOTrainer(..., rollout_func=replay(${JSON.stringify(file)}), reward_funcs=reward)`,
    'several rows per trajectory: espalier_trl.rollout_samples(FILE) for AsyncGRPOTrainer',
  ],
})

function toRow(
  source: ExportGroup,
  credited: CreditedRow,
  {
    part,
    parts,
    numbers,
  }: { readonly part: number; readonly parts: number; readonly numbers: Float32Array },
): object {
  const { row, member, tree, mask, credit, isTrained } = credited
  const { trajectory } = row
  const start = promptLength(credited)
  const spoke = trajectory.turns[0]?.messages ?? trajectory.messages.length
  return {
    prompt: trajectory.messages.slice(0, spoke),
    completion: trajectory.messages.slice(spoke),
    prompt_ids: row.ids.subarray(0, start),
    completion_ids: row.ids.subarray(start),
    logprobs: numbers.subarray(start),
    env_mask: mask.subarray(start),
    reward: isUnscored(member) ? null : member.reward.total,
    rewards: isUnscored(member)
      ? {}
      : Object.fromEntries(member.reward.parts.map(({ name, score }) => [name, score])),
    advantage: isTrained ? credit : 0,
    weight: isTrained ? weightOf(row, mask) : null,
    model_version: row.versions.at(-1)?.value.to ?? 0,
    group_id: source.order,
    task: source.group.task,
    trajectory: trajectory.id,
    member: tree.member,
    row: row.index,
    rows: row.count,
    part,
    parts,
  }
}

/** The weight of a row's trained tokens, which is the same for all of them here. */
function weightOf({ weights }: Row, mask: Uint8Array): number {
  return weights[mask.indexOf(1)] ?? 1
}
