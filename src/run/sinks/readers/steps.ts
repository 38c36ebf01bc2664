import type { Message, ToolCall } from '@espalier/text'
import type { Outcome } from '../../../base/core/outcome.ts'
import { checkLengths, type Fields } from '../fields.ts'
import {
  type FormatReader,
  namedReward,
  plainReward,
  type ReadTrajectory,
  unknownParts,
} from '../reader.ts'
import { messagesIn, numbersIn, outcomeIn, toolsIn } from './checked.ts'
import { samplingIn } from './sampling.ts'
import { joinSteps, type StepTokens } from './token-rows.ts'

/** rLLM's episodes: every step has all it was given and what it sampled. */
export const rllmReader: FormatReader = {
  name: 'rllm',
  kind: 'lines',
  async *read(records) {
    for await (const episode of records) {
      const [task = '', member = '0'] = episode.text('id').split(':')
      for (const each of episode.each('trajectories')) {
        const steps = each.each('steps')
        const last = steps.at(-1)
        yield {
          ...unknownParts,
          ...idsOf(each.has('uid') ? each.text('uid') : undefined, { task, member }),
          data: episode.value.task ?? null,
          paths: joinSteps(steps.map(readStep)),
          messages: last?.has('chat_completions') ? messagesIn(last, 'chat_completions') : [],
          reward: plainReward(each.numberOrNull('reward')),
          advantage: advantageOf(steps),
          outcome: outcomeOf(each),
        }
      }
    }
  },
}

function readStep(step: Fields): StepTokens {
  const response = step.ids('response_ids')
  const logprobs = step.list('logprobs').length > 0 ? step.logprobs('logprobs') : undefined
  if (logprobs) checkLengths(step.place, { response_ids: response, logprobs })
  const advantages = Array.isArray(step.value.advantage) ? step.doubles('advantage') : undefined
  if (advantages) checkLengths(step.place, { response_ids: response, advantage: advantages })
  return {
    prompt: step.ids('prompt_ids'),
    response,
    ...(advantages && { advantages }),
    ...(logprobs && { logprobs }),
    ...(step.has('weight_version') && { version: step.integer('weight_version') }),
  }
}

function advantageOf(steps: readonly Fields[]): number | null {
  for (const step of steps) {
    if (typeof step.value.advantage === 'number') return step.value.advantage
    if (!step.has('advantage')) continue
    const found = step.doubles('advantage').find(value => value !== 0)
    if (found !== undefined) return found
  }
  return steps.some(step => step.has('advantage')) ? 0 : null
}

/** Our own outcome, if the file kept it; a failed trajectory has no reward. */
function outcomeOf(trajectory: Fields): Outcome {
  const info = trajectory.has('info') ? trajectory.inner('info') : undefined
  if (info?.has('outcome')) return outcomeIn(info, 'outcome')
  return trajectory.has('reward') ? { kind: 'completed' } : failed
}

const failed: Outcome = {
  kind: 'failed',
  boundary: 'environment',
  message: 'failed in the run it came from',
}

/** The Agent Trajectory Interchange Format; steps without token ids are encoded again. */
export const atifReader: FormatReader = {
  name: 'atif',
  kind: 'lines',
  async *read(records) {
    let number = 0
    for await (const document of records) yield readDocument(document, number++)
  },
}

function readDocument(document: Fields, number: number): ReadTrajectory {
  const steps = document.each('steps')
  const extra = document.has('extra') ? document.inner('extra') : undefined
  const task = extra?.has('task') ? extra.text('task') : `trajectory-${number}`
  const id = document.has('trajectory_id') ? document.text('trajectory_id') : undefined
  const calls = steps.filter(step => step.value.source === 'agent' && step.has('metrics'))
  const agent = document.inner('agent')
  const hasTokens =
    calls.length > 0 && calls.every(step => step.inner('metrics').has('completion_token_ids'))
  return {
    ...unknownParts,
    ...idsOf(id, { task, member: extra?.has('member') ? String(extra.integer('member')) : '0' }),
    data: null,
    paths: hasTokens ? joinSteps(calls.map(readMetrics)) : [],
    messages: steps.flatMap(toMessages),
    ...samplingOf(agent),
    ...(agent.has('tool_definitions') && { tools: toolsIn(agent, 'tool_definitions') }),
    reward: namedReward(
      extra?.numberOrNull('reward') ?? null,
      extra?.has('rewards') ? numbersIn(extra, 'rewards') : {},
    ),
    advantage: extra?.numberOrNull('advantage') ?? null,
    ...(extra?.has('outcome') && { outcome: outcomeIn(extra, 'outcome') }),
    ...(!extra?.has('outcome') && !extra?.has('reward') && { outcome: failed }),
  }
}

/** How it was sampled, if the file is ours. */
function samplingOf(agent: Fields): Partial<Pick<ReadTrajectory, 'sampling' | 'seed'>> {
  const extra = agent.has('extra') ? agent.inner('extra') : undefined
  if (!extra?.has('sampling')) return {}
  return samplingIn(extra)
}

function readMetrics(step: Fields): StepTokens {
  const metrics = step.inner('metrics')
  const response = metrics.ids('completion_token_ids')
  const logprobs = metrics.has('logprobs') ? metrics.logprobs('logprobs') : undefined
  if (logprobs) checkLengths(metrics.place, { completion_token_ids: response, logprobs })
  const version = metrics.has('extra') ? metrics.inner('extra').value.policy_version : undefined
  return {
    prompt: metrics.ids('prompt_token_ids'),
    response,
    ...(logprobs && { logprobs }),
    ...(typeof version === 'number' && { version }),
  }
}

function toMessages(step: Fields): readonly Message[] {
  const source = step.text('source')
  const text = typeof step.value.message === 'string' ? step.value.message : ''
  const results = step.has('observation') ? step.inner('observation').each('results') : []
  const observed = results.map(
    (result): Message => ({
      role: 'tool',
      tool_call_id: result.has('source_call_id') ? result.text('source_call_id') : '',
      content: typeof result.value.content === 'string' ? result.value.content : '',
    }),
  )
  if (source === 'user') return [{ role: 'user', content: text }, ...observed]
  if (source === 'system') {
    return text === '' && observed.length > 0
      ? observed
      : [{ role: 'system', content: text }, ...observed]
  }
  const calls = step.has('tool_calls') ? step.each('tool_calls').map(toCall) : []
  const reply: Message = {
    role: 'assistant',
    content: text,
    ...(step.has('reasoning_content') && { reasoning_content: step.text('reasoning_content') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return [reply, ...observed]
}

function toCall(call: Fields): ToolCall {
  return {
    id: call.text('tool_call_id'),
    type: 'function',
    function: {
      name: call.text('function_name'),
      arguments: JSON.stringify(call.inner('arguments').value),
    },
  }
}

/** Our own ids, if the file kept them; otherwise made from the task and the member. */
export function idsOf(
  id: string | undefined,
  { task, member }: { readonly task: string; readonly member: string },
): Pick<ReadTrajectory, 'group' | 'task' | 'member' | 'id' | 'tree'> {
  const tree = id?.slice(0, Math.max(0, id.lastIndexOf('/')))
  const group = tree?.slice(0, Math.max(0, tree.lastIndexOf('/')))
  const number = Number(member)
  const own = Number.isInteger(number) ? number : 0
  if (!id || !tree || !group) return { group: task, task, member: own }
  return { group, task, member: own, id, tree }
}
