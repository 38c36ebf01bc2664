import {
  type CallAttempt,
  type Message,
  type Reply,
  type ToolDefinition,
  textOf,
} from '@espalier/text'
import { parseJson } from '@espalier/text/python'
import type { OpenCall, StepCall, Transition, World } from '../../base/core/environment.ts'
import { across } from '../../base/core/failure.ts'
import type { Json, NonEmpty } from '../../base/core/ids.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import type { UserUsage } from '../../engine/environments/users/user.ts'
import type { UserPrice } from '../tau/report.ts'
import { type EvaluationType, evaluate, type Judge, type RewardInfo } from './evaluate.ts'
import type { SpokenMessage, Tau2ToolCall, ToolMessage } from './message.ts'
import { agentView, type Orchestrator } from './orchestrator.ts'
import { PythonError } from './program/values.ts'
import type { Prompts } from './prompts.ts'
import { messagesToJson, rewardToJson, type Tau2Report, taskText, usageWithCost } from './report.ts'
import type { Tau2Task } from './task.ts'
import { type Tau2User, toMessage } from './user.ts'

/** Everything a conversation needs. */
export interface ConversationParts {
  readonly orchestrator: Orchestrator
  readonly task: Tau2Task
  readonly split: string
  readonly prompts: Prompts
  readonly system: string
  readonly tools: readonly ToolDefinition[]
  readonly user: Tau2User
  /** What tells the user who they are, and what they may do. */
  readonly userSide: { readonly system: string; readonly tools: readonly ToolDefinition[] }
  readonly seed: number
  readonly evaluation: EvaluationType
  readonly judge?: Judge
  readonly price?: UserPrice
  readonly clock?: () => number
}

/** What changes beside the conversation itself. */
interface Progress {
  readonly usage: UserUsage | null
  readonly reward: RewardInfo | null
  /** Calls that could not be read. */
  readonly misses: number
  /** Whether the policy did something at which the original would have ended the conversation. */
  readonly broken: boolean
}

/** What a replay needs of the user: the tokens used, and what they said and did since the last step. */
type Spent = { readonly usage: UserUsage | null; readonly said: Json }

const begun: Progress = { usage: null, reward: null, misses: 0, broken: false }

/** How many calls in a row of a conversation may be unreadable. */
const MOST_MISSES = 10

/** Opens a conversation: the user is heard before the agent has its first turn. */
export async function openConversation(parts: ConversationParts, call: OpenCall): Promise<World> {
  const heard = await hearUser(parts, begun, { call, replay: openedBefore(call) })
  const progress = await finished(parts, heard.progress, call)
  const opening: NonEmpty<Message> = [
    { role: 'system', content: parts.system },
    ...agentView(parts.orchestrator.messages).map(toMessage),
  ]
  return worldOf(parts, progress, { opening, spent: heard.spent })
}

/** What the user said at the opening that is replayed; only their words if nothing else was recorded. */
function openedBefore({ replay }: OpenCall): Spent | undefined {
  if (replay === undefined || replay.spent !== undefined) return replay?.spent as Spent | undefined
  const words = replay.opening.findLast(({ role }) => role === 'user')
  const said = words ? [{ content: textOf(words.content), tool_calls: null, cost: null }] : []
  return { usage: null, said }
}

function worldOf(
  parts: ConversationParts,
  from: Progress,
  { opening, spent }: { readonly opening: NonEmpty<Message>; readonly spent: Spent },
): World {
  let progress = from
  return {
    opening,
    spent: spent as unknown as Json,
    tools: parts.tools,
    async step(action, call) {
      const stepped = await step(parts, progress, { action, call })
      progress = stepped.progress
      return stepped.transition
    },
    report: () => reportOn(parts, progress) as unknown as Json,
    fork: async () =>
      worldOf({ ...parts, orchestrator: parts.orchestrator.fork() }, progress, { opening, spent }),
    [Symbol.asyncDispose]: async () => {},
  }
}

interface Heard {
  readonly progress: Progress
  readonly spent: Spent
}

/** Lets the user speak, and use their tools, until it is the agent's turn or over. */
async function hearUser(
  parts: ConversationParts,
  progress: Progress,
  { call, replay }: { readonly call: OpenCall | StepCall; readonly replay: Spent | undefined },
): Promise<Heard> {
  const { orchestrator } = parts
  const before = orchestrator.messages.length
  const remembered = replay ? [...(replay.said as unknown as readonly RecordedSpeech[])] : undefined
  let { usage } = progress
  while (orchestrator.termination === null && orchestrator.turn !== 'agent') {
    if (orchestrator.turn === 'env') orchestrator.runTools()
    else if (remembered) orchestrator.takeUser(fromRecorded(remembered.shift()))
    else {
      const { system, tools } = parts.userSide
      const turn = { system, tools, messages: orchestrator.messages, seed: parts.seed }
      const speech = await across('user', call, () => parts.user(turn, call))
      usage = addUsage(usage, speech.usage)
      orchestrator.takeUser(withCost(speech.message, parts.price, speech.usage))
    }
  }
  if (replay) usage = replay.usage
  const said = messagesToJson(
    orchestrator.messages.slice(before).filter(({ role }) => role === 'user'),
  )
  return { progress: { ...progress, usage }, spent: { usage, said } }
}

function withCost(
  message: SpokenMessage,
  price: UserPrice | undefined,
  usage: { readonly prompt: number; readonly sampled: number } | undefined,
): SpokenMessage {
  if (usage === undefined) return { ...message, cost: message.cost ?? 0 }
  const cost = price ? (usage.prompt * price.prompt + usage.sampled * price.sampled) / 1e6 : null
  return { ...message, cost }
}

function addUsage(
  all: UserUsage | null,
  more: { readonly prompt: number; readonly sampled: number } | undefined,
): UserUsage | null {
  if (more === undefined) return all
  const { calls, prompt, sampled } = all ?? { calls: 0, prompt: 0, sampled: 0 }
  return { calls: calls + 1, prompt: prompt + more.prompt, sampled: sampled + more.sampled }
}

interface RecordedSpeech {
  readonly content: string | null
  readonly tool_calls:
    | readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
    | null
  readonly cost: number | null
}

function fromRecorded(recorded: RecordedSpeech | undefined): SpokenMessage {
  if (recorded === undefined) throw new Error('The replay does not say what the user answered.')
  const tool_calls = recorded.tool_calls?.map(
    (call): Tau2ToolCall => ({
      id: call.id,
      name: call.name,
      arguments: parseJson(call.arguments) as Tau2ToolCall['arguments'],
      requestor: 'user',
    }),
  )
  return {
    role: 'user',
    content: recorded.content,
    tool_calls: tool_calls ?? null,
    cost: recorded.cost,
  }
}

/** The reward, once the conversation is over. */
async function finished(
  parts: ConversationParts,
  progress: Progress,
  call: OpenCall | StepCall,
): Promise<Progress> {
  const { orchestrator, task, prompts, judge, evaluation } = parts
  const termination = progress.broken ? 'agent_error' : orchestrator.termination
  if (termination === null || progress.reward !== null) return progress
  const reward = await across('reward', call, () =>
    evaluate({
      domain: orchestrator.world.domain,
      prompts,
      task,
      messages: orchestrator.messages,
      termination,
      type: evaluation,
      solo: orchestrator.world.solo,
      ...(judge && { judge }),
    }),
  )
  return { ...progress, reward }
}

interface Stepping {
  readonly action: Reply
  readonly call: StepCall
}

async function step(
  parts: ConversationParts,
  progress: Progress,
  { action, call }: Stepping,
): Promise<{ transition: Transition; progress: Progress }> {
  const started = parts.clock?.() ?? 0
  if (progress.reward !== null) return { transition: { kind: 'end' }, progress }
  const read = readReply(action)
  if (read === undefined) return await missStep(parts, progress, { action, call })
  const { orchestrator } = parts
  const from = orchestrator.messages.length
  if (!takeAgent(orchestrator, read)) {
    const broken = await finished(parts, { ...progress, broken: true }, call)
    return { transition: { kind: 'end' }, progress: broken }
  }
  const answers = orchestrator.turn === 'env' ? orchestrator.runTools() : []
  const heard = await hearUser(parts, progress, {
    call,
    replay: call.replay?.spent as Spent | undefined,
  })
  const ended = await finished(parts, heard.progress, call)
  const observed = agentView(orchestrator.messages.slice(from + 1)).map(toMessage)
  const seconds = (parts.clock?.() ?? 0) - started
  const calls = recordCalls(action, answers, { turn: call.turn, seconds })
  return {
    transition: transitionOf(observed, {
      calls,
      spent: heard.spent,
      isOver: ended.reward !== null,
    }),
    progress: ended,
  }
}

function transitionOf(
  observed: readonly Message[],
  {
    calls,
    spent,
    isOver,
  }: { readonly calls: readonly CallRecord[]; readonly spent: Spent; readonly isOver: boolean },
): Transition {
  const more = { calls, spent: spent as unknown as Json }
  const [first, ...rest] = observed
  if (isOver || first === undefined) return { kind: 'end', observed, ...more }
  return { kind: 'continue', observed: [first, ...rest], ...more }
}

/** Whether the agent's message was accepted; if the original would break off at it, the agent ended the attempt. */
function takeAgent(orchestrator: Orchestrator, message: SpokenMessage): boolean {
  try {
    orchestrator.takeAgent(message)
    return true
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    return false
  }
}

/** The agent's message; `undefined` if one of its calls cannot be read. */
function readReply({ message, calls }: Reply): SpokenMessage | undefined {
  const read: Tau2ToolCall[] = []
  for (const attempt of calls) {
    const given = attempt.kind === 'parsed' ? readArguments(attempt.arguments) : undefined
    if (attempt.kind !== 'parsed' || given === undefined) return undefined
    read.push({ id: attempt.id, name: attempt.name, arguments: given, requestor: 'assistant' })
  }
  const words = textOf(message.content)
  return {
    role: 'assistant',
    content: words === '' ? null : words,
    tool_calls: read.length === 0 ? null : read,
    cost: null,
  }
}

function readArguments(text: string): Tau2ToolCall['arguments'] | undefined {
  try {
    const read = parseJson(text.trim() === '' ? '{}' : text)
    return read instanceof Map ? (read as Tau2ToolCall['arguments']) : undefined
  } catch (error) {
    if (error instanceof PythonError) return undefined
    throw error
  }
}

/** The original breaks off at a call it cannot read; here the agent gets an error, so that it can learn. */
async function missStep(
  parts: ConversationParts,
  before: Progress,
  { action, call }: Stepping,
): Promise<{ transition: Transition; progress: Progress }> {
  const misses = before.misses + 1
  const observed = action.calls.map(attempt => toolMessage(attempt, missText(attempt)))
  const [first, ...rest] = observed
  const calls = action.calls.map(
    (attempt): CallRecord => ({
      turn: call.turn,
      id: attempt.id,
      tool: attempt.name ?? '',
      input: attempt.kind === 'malformed' ? attempt.raw : attempt.arguments,
      output: missText(attempt),
      problem: 'malformed-call',
      seconds: 0,
    }),
  )
  if (misses < MOST_MISSES && first) {
    return {
      transition: { kind: 'continue', observed: [first, ...rest], calls },
      progress: { ...before, misses },
    }
  }
  const progress = await finished(parts, { ...before, misses, broken: true }, call)
  return { transition: { kind: 'end', observed, calls }, progress }
}

const missText = (attempt: CallAttempt): string =>
  attempt.kind === 'malformed'
    ? `Error: the call could not be read: ${attempt.problem}. No call of this message was run.`
    : 'Error: another call of this message could not be read. No call of this message was run.'

const toolMessage = ({ id, name }: CallAttempt, content: string): Message => ({
  role: 'tool',
  tool_call_id: id,
  ...(name !== undefined && { name }),
  content,
})

function recordCalls(
  { calls }: Reply,
  answers: readonly ToolMessage[],
  { turn, seconds }: { readonly turn: number; readonly seconds: number },
): readonly CallRecord[] {
  return calls.map((attempt, index): CallRecord => {
    const output = answers[index]?.content ?? ''
    const input: unknown =
      attempt.kind === 'parsed' ? JSON.parse(attempt.arguments || '{}') : attempt.raw
    const problem = answers[index]?.problem
    return {
      turn,
      id: attempt.id,
      tool: attempt.name ?? '',
      input,
      output,
      ...(problem && { problem }),
      seconds: seconds / calls.length,
    }
  })
}

function reportOn(
  { orchestrator, task, split, price }: ConversationParts,
  { reward, usage, broken }: Progress,
): Tau2Report {
  const { domain } = orchestrator.world
  return {
    benchmark: 'tau2-bench',
    domain: domain.name,
    split,
    task_id: task.id,
    reward: reward?.reward ?? 0,
    termination_reason: broken ? 'agent_error' : orchestrator.termination,
    steps: orchestrator.steps,
    errors: orchestrator.errors,
    user_cost: orchestrator.costs().user,
    reward_info: reward === null ? null : rewardToJson(reward),
    messages: messagesToJson(orchestrator.messages),
    task: taskText(task),
    retrieval: domain.knowledge ? domain.retrieval : null,
    user: usageWithCost(usage, price),
  }
}
