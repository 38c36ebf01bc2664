import type { Outcome } from '../../../base/core/outcome.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { isUnscored } from '../../rows/row-record.ts'
import {
  type Conversation,
  conversationsOf,
  countUntrained,
  rewardOf,
  spoken,
  unknownTokens,
} from '../conversations.ts'
import type { ExportGroup, FormatOptions } from '../format.ts'
import { checkForm, type Training, unknownWords } from '../forms.ts'
import { lineFormat } from '../line-format.ts'
import { makeTelling, type Telling } from '../numbers.ts'
import type { TurnTokens } from '../turns.ts'

const training: Training = {
  form: 'paths',
  because: "rLLM computes its loss step by step or over a trajectory's merged steps",
  sequence: 'row',
  importance: 'age',
}

/**
 * rLLM's `Episode.to_dict()`, one per tree (rllm/types.py at 9beb6e0, 2026-08-15). Each step carries
 * an advantage per token: rLLM's Tinker backend takes it as it is with `use_precomputed_advantage`; its
 * verl backend knows one number per trajectory, and computes its own from rewards. A token that another trajectory of
 * the tree trains has advantage 0.
 */
export const rllm = lineFormat({
  name: 'rllm',
  summary: "rLLM's Episode with token ids, log-probabilities and advantages, one per line",
  carries: ['tokens', 'advantages', 'rewards', 'messages', 'outcomes', 'fidelity'],
  training,
  comparesRewards: true,
  start(options) {
    options.lost.note(
      'rLLM compares rewards itself, with the deviation of a population; its Tinker backend takes ours with use_precomputed_advantage=true, its verl backend cannot',
    )
    const telling = makeTelling(options.lost)
    return source => toEpisodes(source, { ...options, telling })
  },
  loading: file => [
    `python:  episodes = [Episode.from_dict(json.loads(line)) for line in open(${JSON.stringify(file)})]`,
    'rllm:    rllm.algorithm.use_precomputed_advantage=true   # with the Tinker backend',
  ],
})

type Options = FormatOptions & { readonly telling: (tree: Tree) => Telling }

function toEpisodes(source: ExportGroup, options: Options): readonly object[] {
  checkForm({ name: 'rllm', training }, source.group, options)
  const all = conversationsOf(source.group, options)
  options.lost.add(unknownWords, unknownTokens(all))
  const conversations = all.map(each => withKnownTurns(each, options))
  countUntrained(conversations, { lost: options.lost, trainer: "rLLM's verl backend" })
  const trees = [...new Set(conversations.map(({ tree }) => tree))]
  return trees.map(tree => {
    const own = conversations.filter(each => each.tree === tree)
    // rLLM splits ids at colons.
    const task = source.group.task.replaceAll(':', '_')
    const best = Math.max(...own.map(each => rewardOf(each) ?? 0))
    return {
      id: `${task}:${tree.member}`,
      task: source.task.data,
      termination_reason: terminationOf(outcomeOf(own[0]!)),
      is_correct: best >= 1,
      session_id: tree.id,
      trajectories: own.map(each => toTrajectory(source, each)),
      metrics: {},
      info: { run: options.run },
    }
  })
}

/** A step has log-probabilities of all its tokens or of none, and rLLM trains all: one that lacks some is left out. */
function withKnownTurns(conversation: Conversation, { telling, lost }: Options): Conversation {
  if (telling(conversation.tree) === 'none') return conversation
  const turns = conversation.turns.filter(({ logprobs }) => !logprobs.some(Number.isNaN))
  const left = conversation.turns.length - turns.length
  lost.add('steps with a token that has no log-probability: left out', left)
  return { ...conversation, turns }
}

function outcomeOf({ member }: Conversation): Outcome {
  return isUnscored(member) ? member.outcome : member.trajectory.outcome
}

function toTrajectory({ task }: ExportGroup, conversation: Conversation): object {
  const { member, turns } = conversation
  return {
    uid: member.trajectory.id,
    name: 'espalier',
    task: task.data,
    steps: turns.map((turn, index) => toStep(conversation, turn, index === turns.length - 1)),
    reward: rewardOf(conversation),
    info: { outcome: outcomeOf(conversation), fidelity: member.trajectory.fidelity.kind },
  }
}

function toStep(conversation: Conversation, tokens: TurnTokens, isLast: boolean): object {
  const { turn, pathIds, start, end, logprobs, credit, version } = tokens
  const { messages, member } = conversation
  const message = messages[turn.messages]
  const reply = message?.role === 'assistant' ? message : undefined
  const hasLogprobs = !logprobs.some(Number.isNaN)
  return {
    prompt_ids: pathIds.subarray(0, start),
    response_ids: pathIds.subarray(start, end),
    logprobs: hasLogprobs ? logprobs : [],
    routing_matrices: null,
    chat_completions: messages.slice(0, turn.messages + 1),
    observation: null,
    thought: reply?.reasoning_content ?? '',
    action: reply?.tool_calls ?? null,
    model_response: reply ? spoken(reply) : '',
    // rLLM's verl backend reads the tokens of a step from here, and leaves out steps without it.
    model_output: {
      content: reply ? spoken(reply) : '',
      reasoning: reply?.reasoning_content ?? null,
      prompt_ids: pathIds.subarray(0, start),
      completion_ids: pathIds.subarray(start, end),
      logprobs: hasLogprobs ? logprobs : [],
      prompt_length: start,
      completion_length: end - start,
      finish_reason: turn.finish.kind === 'length' ? 'length' : 'stop',
      weight_version: version.to,
    },
    info: {},
    reward: turn.reward ?? (isLast && !isUnscored(member) ? member.reward.total : 0),
    done: isLast,
    mc_return: 0,
    advantage: credit,
    weight_version: version.to,
  }
}

/** rLLM's `TerminationReason`. */
function terminationOf(outcome: Outcome): string {
  if (outcome.kind === 'completed') return 'env_done'
  if (outcome.kind !== 'truncated') return 'error'
  switch (outcome.limit) {
    case 'turns':
      return 'max_turns_exceeded'
    case 'tokens':
      return 'max_response_length_exceeded'
    case 'context':
      return 'max_prompt_length_exceeded'
    case 'time':
      return 'timeout'
    default:
      return 'unknown'
  }
}
