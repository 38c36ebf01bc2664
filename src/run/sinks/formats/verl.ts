import type { Row } from '../../../base/core/row.ts'
import { isUnscored, type MemberRow } from '../../rows/row-record.ts'
import { promptLength, rowImportance, tokenCredit, trainedMask } from '../credited-row.ts'
import { replayedExperts } from '../experts.ts'
import type { ExportGroup } from '../format.ts'
import { rowsFor, type Training } from '../forms.ts'
import { type ImageNaming, imageFiles } from '../images.ts'
import { answerOf, lineFormat } from '../line-format.ts'
import { makeTelling, type NumberedRow, numbered } from '../numbers.ts'
import { makeRowCount } from './verl-rows.ts'

const training: Training = {
  form: 'paths',
  because: 'verl computes its loss row by row',
  sequence: 'row',
  importance: 'tokens',
}

/**
 * verl's `AgentLoopOutput`, one per line, with the `uid` its estimators group by
 * (verl/experimental/agent_loop/agent_loop.py of 0.9.1). Its estimators by token carry rewards over trained
 * tokens only, so a response ends with what was sampled last and the reward stands on the last token that is
 * trained; the advantage times weight of every token is in `advantages`, which the estimator registered by
 * `espalier_verl` passes on.
 */
export const verl = lineFormat({
  name: 'verl',
  summary: "verl's AgentLoopOutput with uid and advantages token by token, one per line",
  carries: ['tokens', 'advantages', 'rewards', 'routed experts', 'images'],
  training,
  comparesRewards: true,
  start({ lost, volatile, imageFile, ...options }) {
    lost.note(
      "verl's own estimators compare rewards by uid and ignore our advantages; adv_estimator=espalier takes ours",
    )
    const telling = makeTelling(lost)
    const count = makeRowCount()
    function* toOutputs(source: ExportGroup) {
      if (source.group.members.some(({ importance }) => importance)) lost.note(weightsNote)
      const rows = rowsFor({ name: 'verl', training }, source.group, { ...options, lost })
      count.add(rows)
      for (const member of rows) {
        const told = numbered(member, telling(member.tree))
        yield toOutput(source, told, { volatile, imageFile })
      }
    }
    return Object.assign(toOutputs, { end: () => count.tell(lost) })
  },
  loading: file => [
    `python:  from espalier_verl import read_batch   # PYTHONPATH=integrations/python of this package`,
    `         batch = read_batch(${JSON.stringify(file)}, prompt_length=…, response_length=…, pad_token_id=…)`,
    'verl:    algorithm.adv_estimator=espalier   # registered by importing espalier_verl',
  ],
})

const weightsNote =
  'importance weights are rollout_is_weights, which read_batch hands to every loss of verl; let verl compute ' +
  'old_log_probs itself, and leave algorithm.rollout_correction.rollout_is at null, which would replace them'

function toOutput(
  source: ExportGroup,
  { member: part, numbers }: NumberedRow,
  { volatile, imageFile }: ImageNaming & { readonly volatile: boolean },
): object {
  const { row, member, tree } = part
  const { trajectory } = row
  const start = promptLength(part)
  const end = sampledEnd(part)
  const { seconds } = trajectory.volatile
  return {
    prompt_ids: row.ids.subarray(0, start),
    response_ids: row.ids.subarray(start, end),
    response_mask: trainedMask(part).subarray(start, end),
    response_logprobs: numbers?.subarray(start, end) ?? null,
    reward_score: isUnscored(member) ? null : member.reward.total,
    ...(row.images && {
      multi_modal_data: { images: imageFiles(shownBefore(row, end), imageFile) },
    }),
    ...(row.experts && { routed_experts: replayedExperts('verl', part) }),
    num_turns: trajectory.messages.length,
    metrics: {
      generate_sequences: volatile ? seconds.policy : 0,
      tool_calls: volatile ? seconds.tools : 0,
      num_preempted: -1,
    },
    extra_fields: {
      turn_scores: trajectory.turns.flatMap(turn => turn.reward ?? []),
      tool_rewards: [],
    },
    uid: source.group.id,
    token_level_scores: scoresOf(part).subarray(start, end),
    ...creditOf(part, start, end),
    data_source: source.group.task,
    raw_prompt: trajectory.messages.slice(0, trajectory.turns[0]?.messages),
    reward_model: { style: 'rule', ground_truth: answerOf(source.task) },
    espalier: { tree: tree.id, trajectory: trajectory.id, row: row.index, rows: row.count },
  }
}

/**
 * Advantages, and separately the importance weights as verl's losses take them. If trajectories with different
 * weights share a token, the advantage includes the weights.
 */
function creditOf(part: MemberRow, start: number, end: number): object {
  const { row } = part
  const credit = tokenCredit(part)
  if (!row.importance) return { advantages: credit.subarray(start, end) }
  const isShared = row.passages.some(({ value }) => value.length > 1)
  if (isShared) return { advantages: credit.subarray(start, end), rollout_is_weights: null }
  const { importance: _, ...bare } = row
  const plain = tokenCredit({ ...part, row: bare })
  return {
    advantages: plain.subarray(start, end),
    rollout_is_weights: rowImportance(row)!.subarray(start, end),
  }
}

/** A row with the images that it shows before a token. */
function shownBefore({ images = [] }: Row, end: number): Pick<Row, 'images'> {
  return { images: images.filter(image => image.end <= end) }
}

/** After the last sampled token of a row: nothing was sampled after the rest, and no token of it is trained. */
function sampledEnd({ row }: MemberRow): number {
  return row.origins.findLast(({ value }) => value === 'sampled')?.end ?? row.ids.length
}

/** The reward on the last trained token of a row, on the last sampled one of a row that is not trained. */
function scoresOf(part: MemberRow): Float64Array {
  const { row, member } = part
  const scores = new Float64Array(row.ids.length)
  const trained = row.mask.lastIndexOf(1)
  if (!isUnscored(member)) {
    scores[trained < 0 ? sampledEnd(part) - 1 : trained] = member.reward.total
  }
  return scores
}
