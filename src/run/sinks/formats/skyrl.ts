import type { Group } from '../../../base/core/group.ts'
import type { Outcome } from '../../../base/core/outcome.ts'
import { isUnscored, type MemberRow } from '../../rows/row-record.ts'
import { promptLength, tokenCredit, trainedMask } from '../credited-row.ts'
import { replayedExperts } from '../experts.ts'
import { type ExportGroup, RefusedError } from '../format.ts'
import { type FormOptions, rowsFor, type Training } from '../forms.ts'
import { imageFiles } from '../images.ts'
import { lineFormat } from '../line-format.ts'
import { makeTelling, type NumberedRow, numbered } from '../numbers.ts'

const training: Training = {
  form: 'paths',
  because: 'SkyRL computes its loss row by row and gives all tokens of a trajectory one advantage',
  sequence: 'row',
}

/**
 * One entry of SkyRL's `GeneratorOutput` per line (skyrl/train/generators/base.py at a956457,
 * 2026-08-21), rows of one trajectory in sequence with `is_last_step` on its last, as step-wise
 * training wants them. SkyRL compares the rewards of last steps by `instance_id` and gives each
 * trajectory one advantage; there is no documented way to hand it another, so what needs one is
 * refused. The endings of a tree are trajectories of their own, each with its full path.
 */
export const skyrl = lineFormat({
  name: 'skyrl',
  summary: "SkyRL's GeneratorOutput, one entry per line, step-wise where needed",
  carries: ['tokens', 'rewards', 'reward parts', 'routed experts', 'images'],
  training,
  comparesRewards: true,
  start({ lost, imageFile, ...options }) {
    lost.note('SkyRL compares the rewards of last steps itself and ignores our advantages')
    const telling = makeTelling(lost)
    return function* toEntries(source: ExportGroup) {
      const { group } = source
      const rows = rowsFor({ name: 'skyrl', training }, group, { ...options, lost })
      const hasBranches = isBranched(group)
      if (hasBranches) refuseTrees(group.id, options)
      const numbers = numberedBy(hasBranches, rows)
      if (rows.some(isUneven)) throw unevenRefused(group.id)
      for (const member of rows) {
        if (member.row.experts && member.row.count > 1) throw stepsRefused(group.id)
        const told = numbered(member, telling(member.tree))
        const entry = toEntry(source, told, numbers.get(member.row.trajectory.id)!)
        yield { ...entry, images: imageFiles(member.row, imageFile) }
      }
    }
  },
  loading: file => [
    `python:  from espalier_skyrl import read_generator_output`,
    `         output = read_generator_output(${JSON.stringify(file)})   # with generator.step_wise_trajectories=true`,
  ],
})

/** Whether a tree has more than one trajectory that is written. */
function isBranched({ members, unscored }: Group): boolean {
  const trees = [...members, ...unscored].map(({ tree }) => tree.id)
  return new Set(trees).size < trees.length
}

/** Whether its tokens have different credit. */
function isUneven(member: MemberRow): boolean {
  if (isUnscored(member.member) || member.member.dropped) return false
  const credit = tokenCredit(member)
  const first = member.row.mask.indexOf(1)
  return credit.some((value, token) => member.row.mask[token] === 1 && value !== credit[first])
}

/** Throws for trees that SkyRL would weigh differently: to it every ending counts the same, with all its tokens. */
function refuseTrees(group: string, { form, weighting }: FormOptions): void {
  if (form === 'once') {
    throw new RefusedError(
      'skyrl',
      `group ${group} holds trees, and SkyRL gives all tokens of a trajectory its own advantage: tokens that several trajectories share would be trained with that of one`,
      'Use --rows paths, or verl, slime, tinker, rllm or verifiers, which take credit token by token.',
    )
  }
  if (weighting === 'uniform') return
  throw new RefusedError(
    'skyrl',
    `group ${group} holds trees whose endings are weighed by ${weighting}, and SkyRL compares and trains them as equals`,
    'Roll with --weighting uniform, or use verl, slime, tinker, rllm or verifiers.',
  )
}

/** The number of each trajectory in its group: its member, or in trees its place. */
function numberedBy(hasTrees: boolean, rows: readonly MemberRow[]): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>()
  for (const { row, tree } of rows) {
    if (numbers.has(row.trajectory.id)) continue
    numbers.set(row.trajectory.id, hasTrees ? numbers.size : tree.member)
  }
  return numbers
}

function stepsRefused(group: string): RefusedError {
  return new RefusedError(
    'skyrl',
    `group ${group} has trajectories of several rows, and SkyRL replays experts only where a trajectory is one`,
    'Use --to slime or verl, or --without experts to train without replaying them.',
  )
}

function unevenRefused(group: string): RefusedError {
  return new RefusedError(
    'skyrl',
    `group ${group} has advantages that differ from turn to turn, and SkyRL gives all steps of a trajectory one`,
    'Use verl, slime, tinker, rllm or verifiers.',
  )
}

function toEntry(
  { group }: ExportGroup,
  { member: part, numbers }: NumberedRow,
  number: number,
): object {
  const { row, member } = part
  const start = promptLength(part)
  return {
    prompt_token_ids: row.ids.subarray(0, start),
    response_ids: row.ids.subarray(start),
    reward: isUnscored(member) ? 0 : member.reward.total,
    loss_mask: trainedMask(part).subarray(start),
    stop_reason: stopReason(isUnscored(member) ? member.outcome : row.trajectory.outcome),
    rollout_logprobs: numbers?.subarray(start) ?? null,
    ...(row.experts && { rollout_expert_indices: replayedExperts('skyrl', part) }),
    trajectory_id: { instance_id: group.id, repetition_id: number },
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
