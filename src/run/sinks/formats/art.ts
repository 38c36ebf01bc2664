import type { Message } from '@espalier/text'
import type { Tree } from '../../../base/core/tree.ts'
import { isUnscored } from '../../rows/row-record.ts'
import {
  type Conversation,
  conversationsOf,
  hasOwnAdvantages,
  isTrainedTurn,
  rewardOf,
  turnAt,
  unknownTokens,
  withoutReasoning,
} from '../conversations.ts'
import { type ExportGroup, type FormatOptions, RefusedError } from '../format.ts'
import { refuseImportance, type Training, unknownWords } from '../forms.ts'
import { lineFormat } from '../line-format.ts'
import { makeTelling, type Telling } from '../numbers.ts'
import type { TurnTokens } from '../turns.ts'

const training: Training = {
  form: 'paths',
  because: 'ART gives all tokens of a trajectory its own advantage',
  sequence: 'row',
}

/**
 * ART's `TrajectoryGroup`, one per line (art/trajectories and art/preprocessing/tokenize.py of
 * openpipe-art 0.5). What the policy said is a `Choice` whose tokens are written as `token_id:N`;
 * ART renders the rest again and computes advantages from the rewards of the group, with the
 * deviation of a population. It has no field for an advantage, so trees with uneven weights,
 * advantages by turn and rewritten contexts are refused.
 */
export const art = lineFormat({
  name: 'art',
  summary: "ART's TrajectoryGroup with choices and token ids, one group per line",
  carries: ['tokens', 'rewards', 'reward parts', 'messages', 'tools'],
  training,
  comparesRewards: true,
  start(options) {
    options.lost.note('ART compares rewards itself and ignores our advantages')
    const telling = makeTelling(options.lost)
    return source => [toGroup(source, { ...options, telling })]
  },
  loading: file => [
    `python:  groups = [TrajectoryGroup.model_validate_json(line) for line in open(${JSON.stringify(file)})]   # art.trajectories`,
  ],
})

type Options = FormatOptions & { readonly telling: (tree: Tree) => Telling }

function toGroup(source: ExportGroup, options: Options): object {
  refuseImportance({ name: 'art', training }, source.group)
  const conversations = conversationsOf(source.group, options)
  refuseWhatCannot(source, conversations, options)
  options.lost.add(
    'tokens that were not sampled: ART renders the messages again',
    conversations.length,
  )
  options.lost.add(
    'token ids of turns that are not trained or have no log-probabilities',
    conversations.flatMap(({ turns }) => turns).filter(turn => !isTold(turn)).length,
  )
  options.lost.add(unknownWords, unknownTokens(conversations))
  return {
    trajectories: conversations.map(each => toTrajectory(source, each, options)),
    metadata: { group: source.group.id, task: source.group.task },
    exceptions: [],
  }
}

function refuseWhatCannot(
  { group }: ExportGroup,
  conversations: readonly Conversation[],
  { form, weighting }: FormatOptions,
): void {
  const trees = new Set(conversations.map(({ tree }) => tree)).size
  const instead = 'Use verl, slime, tinker, rllm or verifiers, which take credit token by token.'
  if (trees < conversations.length && (form === 'once' || weighting !== 'uniform')) {
    const reason = `group ${group.id} holds trees, and ART gives all tokens of a trajectory its own advantage, endings counting alike`
    throw new RefusedError('art', reason, instead)
  }
  if (conversations.some(({ member }) => hasOwnAdvantages(member))) {
    const reason = `group ${group.id} has advantages by turn or part of one, and ART computes one per trajectory`
    throw new RefusedError('art', reason, instead)
  }
  if (conversations.some(({ paths }) => paths > 1)) {
    const reason = `group ${group.id} has a context that was rewritten, whose messages are not kept, and ART renders messages`
    throw new RefusedError('art', reason, instead)
  }
}

function toTrajectory(
  source: ExportGroup,
  conversation: Conversation,
  { run, lost, telling }: Options,
): object {
  const { member, tree, messages } = conversation
  lost.add('texts of reasoning', messages.filter(each => 'reasoning_content' in each).length)
  const { parts } = isUnscored(member) ? { parts: [] } : member.reward
  // A choice without numbers would be trained from made-up ones if others have them.
  const isChoice = telling(tree) === 'none' ? isTrainedTurn : isTold
  return {
    messages_and_choices: messages.map((message, index) => {
      const turn = turnAt(conversation, index)
      return message.role === 'assistant' && turn && isChoice(turn)
        ? toChoice(message, turn)
        : withoutReasoning(message)
    }),
    tools: tree.tools.length > 0 ? tree.tools : null,
    reward: rewardOf(conversation) ?? 0,
    metrics: Object.fromEntries(parts.map(({ name, score }) => [name, score])),
    metadata: {
      run,
      group: source.group.id,
      trajectory: member.trajectory.id,
      outcome: isUnscored(member) ? member.outcome.kind : member.trajectory.outcome.kind,
    },
    additional_histories: [],
    logs: [],
  }
}

/** Whether the ids of a turn's tokens are written: ART has them beside log-probabilities only. */
function isTold(turn: TurnTokens): boolean {
  return isTrainedTurn(turn) && !turn.logprobs.some(Number.isNaN)
}

function toChoice(message: Message, turn: TurnTokens): object {
  const ids = turn.pathIds.subarray(turn.start, turn.end)
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  return {
    finish_reason:
      turn.turn.finish.kind === 'length' ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
    index: 0,
    message: withoutReasoning(message),
    logprobs: isTold(turn)
      ? { content: [...ids].map((id, token) => tokenLogprob(id, turn.logprobs[token]!)) }
      : null,
  }
}

/** vLLM's `return_tokens_as_token_ids`, which ART reads ids from. */
function tokenLogprob(id: number, logprob: number): object {
  return { token: `token_id:${id}`, bytes: null, logprob, top_logprobs: [] }
}
