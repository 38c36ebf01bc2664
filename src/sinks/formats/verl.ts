import { promptLength, tokenCredit, trainedMask } from '../credited-row.ts'
import type { ExportGroup } from '../format.ts'
import { answerOf, lineFormat, selectedRows } from '../line-format.ts'
import { isUnscored, type MemberRow } from '../row-record.ts'

/**
 * verl's `AgentLoopOutput`, one per line, with the `uid` its estimators group by
 * (verl/experimental/agent_loop/agent_loop.py at b178a3c, 0.8.0.dev). verl computes advantages from
 * one score per row and `uid`, which counts a trajectory of several rows several times and knows no
 * credit of single tokens. Its documented way is `register_adv_est`: ours returns
 * `token_level_scores` as they are, which hold the advantage times the weight of every token.
 */
export const verl = lineFormat({
  name: 'verl',
  summary: "verl's AgentLoopOutput with uid and token-level scores, one per line",
  carries: ['tokens', 'advantages', 'rewards'],
  start({ lost, volatile, weighting }) {
    return function* toOutputs(source: ExportGroup) {
      for (const member of selectedRows(source.group, { weighting })) {
        const missing = member.row.logprobs.filter(Number.isNaN).length
        lost.add('tokens without a log-probability, in rows that therefore carry none', missing)
        yield toOutput(source, member, { hasLogprobs: missing === 0, volatile })
      }
    }
  },
  loading: file => [
    `python:  from espalier_verl import read_batch`,
    `         batch = read_batch(${JSON.stringify(file)}, prompt_length=…, response_length=…, pad_token_id=…)`,
    'verl:    algorithm.adv_estimator=espalier   # registered by importing espalier_verl',
  ],
})

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
    token_level_scores: tokenCredit(part).subarray(start),
    data_source: source.group.task,
    raw_prompt: trajectory.messages.slice(0, trajectory.turns[0]?.messages),
    reward_model: { style: 'rule', ground_truth: answerOf(source.task) },
    espalier: { tree: tree.id, trajectory: trajectory.id, row: row.index, rows: row.count },
  }
}
