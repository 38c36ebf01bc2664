import type { Outcome } from '../../core/outcome.ts'
import { lacksLogprobs, promptLength, trainedMask } from '../credited-row.ts'
import { type ExportGroup, RefusedError } from '../format.ts'
import { lineFormat, selectedRows } from '../line-format.ts'
import { isUnscored, type MemberRow } from '../row-record.ts'
import { shapeOf } from '../shapes.ts'

/**
 * One entry of SkyRL's `GeneratorOutput` per line (skyrl/train/generators/base.py at a956457,
 * 2026-08-21), rows of one trajectory in sequence with `is_last_step` on its last, as step-wise
 * training wants them. SkyRL compares the rewards of last steps by `instance_id` and gives each
 * trajectory one advantage; there is no documented way to hand it another, so what needs one is
 * refused.
 */
export const skyrl = lineFormat({
  name: 'skyrl',
  summary: "SkyRL's GeneratorOutput, one entry per line, step-wise where needed",
  carries: ['tokens', 'rewards', 'reward parts'],
  start({ weighting }) {
    let hasLogprobs: boolean | undefined
    return function* toEntries(source: ExportGroup) {
      const { group } = source
      const rows = selectedRows(group, { weighting })
      const shape = shapeOf(group, rows)
      if (shape.trees > 0) throw treeRefused(group.id)
      if (shape.unevenRows > 0) throw unevenRefused(group.id)
      for (const member of rows) {
        const has = !lacksLogprobs(member)
        hasLogprobs ??= has
        if (has !== hasLogprobs) throw mixedLogprobs(member.row.trajectory.id)
        yield toEntry(source, member, has)
      }
    }
  },
  loading: file => [
    `python:  from espalier_skyrl import read_generator_output`,
    `         output = read_generator_output(${JSON.stringify(file)})   # with generator.step_wise_trajectories=true`,
  ],
})

function treeRefused(group: string): RefusedError {
  return new RefusedError(
    'skyrl',
    `group ${group} holds trees, and SkyRL gives all tokens of a trajectory its own advantage: tokens that several trajectories share would be trained with that of one`,
    'Use verl, slime, tinker, rllm or verifiers, which take credit token by token.',
  )
}

function unevenRefused(group: string): RefusedError {
  return new RefusedError(
    'skyrl',
    `group ${group} has advantages that differ from turn to turn, and SkyRL gives all steps of a trajectory one`,
    'Use verl, slime, tinker, rllm or verifiers.',
  )
}

function mixedLogprobs(trajectory: string): RefusedError {
  return new RefusedError(
    'skyrl',
    `${trajectory} has log-probabilities where others have none (or the other way round), and rollout_logprobs is there for all rows or for none`,
    'Export the two kinds apart with --where.',
  )
}

function toEntry({ group }: ExportGroup, part: MemberRow, has: boolean): object {
  const { row, member, tree } = part
  const start = promptLength(part)
  return {
    prompt_token_ids: row.ids.subarray(0, start),
    response_ids: row.ids.subarray(start),
    reward: isUnscored(member) ? 0 : member.reward.total,
    loss_mask: trainedMask(part).subarray(start),
    stop_reason: stopReason(isUnscored(member) ? member.outcome : row.trajectory.outcome),
    rollout_logprobs: has ? row.logprobs.subarray(start) : null,
    trajectory_id: { instance_id: group.id, repetition_id: tree.member },
    is_last_step: row.index === row.count - 1,
    env_metrics: isUnscored(member)
      ? {}
      : Object.fromEntries(member.reward.parts.map(({ name, score }) => [name, score])),
  }
}

function stopReason(outcome: Outcome): string {
  if (outcome.kind === 'completed') return 'stop'
  return outcome.kind === 'truncated' ? 'length' : 'error'
}
