import { isUnscored, type MemberRow } from '../../rows/row-record.ts'
import {
  countUnknown,
  promptLength,
  rowImportance,
  tokenCredit,
  trainedMask,
} from '../credited-row.ts'
import { replayedExperts } from '../experts.ts'
import type { ExportGroup } from '../format.ts'
import { rowsFor, type Training } from '../forms.ts'
import { answerOf, lineFormat } from '../line-format.ts'

const training: Training = {
  form: 'paths',
  because: 'verl computes its loss row by row',
  sequence: 'row',
  importance: 'tokens',
}

/**
 * verl's `AgentLoopOutput`, one per line, with the `uid` its estimators group by
 * (verl/experimental/agent_loop/agent_loop.py of 0.9.1). verl's own estimators sum one score per row,
 * so the reward is where verl puts it, on the last token of the response; the advantage times weight of
 * every token is in `advantages`, which the estimator registered by `espalier_verl` passes on.
 */
export const verl = lineFormat({
  name: 'verl',
  summary: "verl's AgentLoopOutput with uid and advantages token by token, one per line",
  carries: ['tokens', 'advantages', 'rewards', 'routed experts'],
  training,
  comparesRewards: true,
  start({ lost, volatile, ...options }) {
    lost.note(
      "verl's own estimators compare rewards by uid and ignore our advantages; adv_estimator=espalier takes ours",
    )
    return function* toOutputs(source: ExportGroup) {
      if (source.group.members.some(({ importance }) => importance)) lost.note(weightsNote)
      for (const member of rowsFor({ name: 'verl', training }, source.group, {
        ...options,
        lost,
      })) {
        yield toOutput(source, member, { hasLogprobs: !countUnknown(member, lost), volatile })
      }
    }
  },
  loading: file => [
    `python:  from espalier_verl import read_batch`,
    `         batch = read_batch(${JSON.stringify(file)}, prompt_length=…, response_length=…, pad_token_id=…)`,
    'verl:    algorithm.adv_estimator=espalier   # registered by importing espalier_verl',
  ],
})

const weightsNote =
  'importance weights are rollout_is_weights, which read_batch hands to every loss of verl; let verl compute ' +
  'old_log_probs itself, and leave algorithm.rollout_correction.rollout_is at null, which would replace them'

function toOutput(
  source: ExportGroup,
  part: MemberRow,
  { hasLogprobs, volatile }: { readonly hasLogprobs: boolean; readonly volatile: boolean },
): object {
  const { row, member, tree } = part
  const { trajectory } = row
  const start = promptLength(part)
  const { seconds } = trajectory.volatile
  return {
    prompt_ids: row.ids.subarray(0, start),
    response_ids: row.ids.subarray(start),
    response_mask: trainedMask(part).subarray(start),
    response_logprobs: hasLogprobs ? row.logprobs.subarray(start) : null,
    reward_score: isUnscored(member) ? null : member.reward.total,
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
    token_level_scores: scoresOf(part).subarray(start),
    ...creditOf(part, start),
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
function creditOf(part: MemberRow, start: number): object {
  const { row } = part
  const credit = tokenCredit(part)
  if (!row.importance) return { advantages: credit.subarray(start) }
  const isShared = row.passages.some(({ value }) => value.length > 1)
  if (isShared) return { advantages: credit.subarray(start), rollout_is_weights: null }
  const { importance: _, ...bare } = row
  const plain = tokenCredit({ ...part, row: bare })
  return {
    advantages: plain.subarray(start),
    rollout_is_weights: rowImportance(row)!.subarray(start),
  }
}

/** The reward on the last token of the row, as verl's agent loop places it; 0 where there is none. */
function scoresOf({ row, member }: MemberRow): Float64Array {
  const scores = new Float64Array(row.ids.length)
  if (!isUnscored(member)) scores[scores.length - 1] = member.reward.total
  return scores
}
