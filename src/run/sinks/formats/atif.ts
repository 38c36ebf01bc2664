import type { Message } from '@espalier/text'
import { textOf } from '@espalier/text'
import { isUnscored } from '../../rows/row-record.ts'
import {
  argumentsOf,
  type Conversation,
  conversationsOf,
  hasOwnAdvantages,
  isTrainedTurn,
  rewardOf,
  spoken,
  turnAt,
} from '../conversations.ts'
import type { ExportGroup, FormatOptions } from '../format.ts'
import { lineFormat } from '../line-format.ts'

/**
 * The Agent Trajectory Interchange Format of Harbor, version 1.7, one document per line
 * (harbor/models/trajectories of Harbor 0.25). Tool results hang on the step that called; a turn
 * that another trajectory of the tree trains is marked as copied context, which readers leave out
 * of training data.
 */
export const atif = lineFormat({
  name: 'atif',
  summary: 'Agent Trajectory Interchange Format 1.7, one trajectory per line',
  carries: [
    'tokens',
    'advantages',
    'rewards',
    'reward parts',
    'messages',
    'tools',
    'outcomes',
    'sampling',
    'fidelity',
  ],
  start: options => source => {
    const all = conversationsOf(source.group, options)
    const told = all.filter(({ messages }) => messages.length > 0)
    options.lost.add('trajectories without a message: no document', all.length - told.length)
    return told.map(conversation => toDocument(source, conversation, options))
  },
  loading: file => [
    `python:  trajectories = [Trajectory.model_validate_json(line) for line in open(${JSON.stringify(file)})]   # harbor.models.trajectories`,
  ],
})

function toDocument(
  { group }: ExportGroup,
  conversation: Conversation,
  { run, volatile, lost }: FormatOptions,
): object {
  const { member, tree } = conversation
  const { trajectory } = member
  const steps = toSteps(conversation)
  lost.add('images in messages', countImages(conversation.messages))
  lost.add(
    'turns with a token without a log-probability, which therefore carry none',
    conversation.turns.filter(({ logprobs }) => logprobs.some(Number.isNaN)).length,
  )
  lost.add("advantages of turns: only the trajectory's", Number(hasOwnAdvantages(member)))
  return {
    schema_version: 'ATIF-v1.7',
    session_id: tree.id,
    trajectory_id: trajectory.id,
    agent: {
      name: 'espalier',
      version: '1',
      ...(tree.tools.length > 0 && { tool_definitions: tree.tools }),
      extra: { sampling: { ...tree.sampling, seed: tree.seed } },
    },
    steps,
    final_metrics: {
      total_prompt_tokens: trajectory.usage.prompt,
      total_completion_tokens: trajectory.usage.sampled,
      ...(volatile && { total_cached_tokens: trajectory.volatile.cached }),
      total_steps: steps.length,
    },
    extra: {
      run,
      group: group.id,
      task: group.task,
      member: tree.member,
      reward: rewardOf(conversation),
      rewards: isUnscored(member)
        ? {}
        : Object.fromEntries(member.reward.parts.map(({ name, score }) => [name, score])),
      advantage: isUnscored(member) || member.dropped ? null : member.advantage,
      outcome: isUnscored(member) ? member.outcome : trajectory.outcome,
      fidelity: trajectory.fidelity,
    },
  }
}

interface Step {
  step_id: number
  source: 'system' | 'user' | 'agent'
  message: string
  observation?: { results: { source_call_id?: string; content: string }[] }
  tool_calls?: readonly { readonly tool_call_id: string }[]
  [field: string]: unknown
}

function toSteps(conversation: Conversation): readonly Step[] {
  const steps: Step[] = []
  conversation.messages.forEach((message, index) => {
    if (message.role === 'tool') {
      observe(steps, message)
      return
    }
    const step_id = steps.length + 1
    if (message.role === 'assistant') {
      steps.push({ step_id, source: 'agent', ...replyFields(conversation, message, index) })
    } else {
      const source = message.role === 'user' ? 'user' : 'system'
      steps.push({ step_id, source, message: textOf(message.content) })
    }
  })
  return steps
}

/** Hangs a tool's answer on the step that called it, or on one of its own if none did. */
function observe(steps: Step[], message: Extract<Message, { role: 'tool' }>): void {
  const content = textOf(message.content)
  const id = message.tool_call_id
  const caller = steps.findLast(step => step.tool_calls?.some(call => call.tool_call_id === id))
  if (!caller) {
    steps.push({
      step_id: steps.length + 1,
      source: 'system',
      message: '',
      observation: { results: [{ content }] },
    })
    return
  }
  caller.observation ??= { results: [] }
  caller.observation.results.push({ source_call_id: id, content })
}

function replyFields(
  conversation: Conversation,
  message: Extract<Message, { role: 'assistant' }>,
  index: number,
) {
  const turn = turnAt(conversation, index)
  const calls = message.tool_calls?.map(call => ({
    tool_call_id: call.id,
    function_name: call.function.name,
    arguments: argumentsOf(call.function.arguments),
  }))
  return {
    message: spoken(message),
    ...(message.reasoning_content !== undefined && {
      reasoning_content: message.reasoning_content,
    }),
    ...(calls && { tool_calls: calls }),
    ...(turn && {
      metrics: {
        prompt_tokens: turn.start,
        completion_tokens: turn.end - turn.start,
        prompt_token_ids: turn.pathIds.subarray(0, turn.start),
        completion_token_ids: turn.pathIds.subarray(turn.start, turn.end),
        ...(!turn.logprobs.some(Number.isNaN) && { logprobs: turn.logprobs }),
        extra: { policy_version: turn.version.to },
      },
      llm_call_count: 1,
      ...(!isTrainedTurn(turn) && { is_copied_context: true }),
    }),
  }
}

function countImages(messages: readonly Message[]): number {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))
  return parts.filter(part => part.type === 'image_url').length
}
