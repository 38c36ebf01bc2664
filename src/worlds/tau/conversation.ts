import { type CallAttempt, type Message, type Reply, textOf } from '@espalier/text'
import { type PythonDict, PythonError, parseJson, str, toJavaScript } from '@espalier/text/python'
import type { StepCall, Transition, World } from '../../base/core/environment.ts'
import { across } from '../../base/core/failure.ts'
import type { NonEmpty } from '../../base/core/ids.ts'
import type { CallRecord, ToolProblem } from '../../base/core/tool.ts'
import { spoken, type User, type UserSpent } from '../../engine/environments/users/user.ts'
import type { TauAgent } from './agents.ts'
import { reportedCost, spentBy, type TauReport, type UserPrice, usageOf } from './report.ts'
import { toInfo } from './results.ts'
import type { TauReward } from './reward.ts'
import { RESPOND, STOP, type TauAction, type TauTaskData } from './task.ts'
import { NoAnswer, type TauWorld } from './world.ts'

/** Everything a conversation needs. */
export interface ConversationParts {
  readonly opening: NonEmpty<Message>
  readonly world: TauWorld
  readonly agent: TauAgent
  readonly user: User
  readonly data: TauTaskData
  /** Of the model that plays the user, if it is known. */
  readonly price?: UserPrice
  readonly clock?: () => number
}

/** What changes as a conversation goes on. */
interface Progress {
  readonly source: string
  /** Absent before the end. */
  readonly reward?: TauReward
  readonly error: string | null
}

const begun: Progress = { source: 'user', error: null }

/** The answer to an action. */
interface Answered {
  readonly text: string
  readonly source: string
  readonly done: boolean
  readonly problem?: ToolProblem
  /** Why the original would have broken off here. */
  readonly error?: string
}

/** Opens a conversation as a world that can be stepped, reported on and forked natively. */
export function openConversation(parts: ConversationParts, from: Progress = begun): World {
  const { opening, world, agent, user } = parts
  let progress = from
  return {
    opening,
    ...spentBy(user),
    tools: agent.tools,
    async step(action, call) {
      const stepped = await stepConversation(parts, action, call)
      progress = stepped.progress
      return stepped.transition
    },
    report: () => reportOn(parts, progress),
    fork: async () => {
      const forked = { ...parts, world: world.fork(), user: user.fork() }
      return openConversation(forked, progress)
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

function reportOn(
  { world, user, data, price }: ConversationParts,
  { source, reward, error }: Progress,
): TauReport {
  const userCost = reward && reportedCost(user, price)
  const info = toInfo({ task: world.task, source, userCost, reward })
  return {
    domain: world.domain.name,
    split: data.split,
    index: data.index,
    reward: reward?.reward ?? 0,
    ...(toJavaScript(info) as Pick<TauReport, 'task' | 'source' | 'user_cost' | 'reward_info'>),
    error,
    user: usageOf(user, price),
  }
}

async function stepConversation(
  parts: ConversationParts,
  reply: Reply,
  call: StepCall,
): Promise<{ transition: Transition; progress: Progress }> {
  const started = parts.clock?.() ?? 0
  const read = readAction(parts.agent, reply)
  const answered =
    read.kind === 'action' ? await takeAction(parts, read.action, call) : read.answered
  const seconds = (parts.clock?.() ?? 0) - started
  const observed = observe(parts.agent, { reply, read, text: answered.text })
  const calls = recordCalls(reply, answered, { turn: call.turn, seconds })
  const { source, error = null } = answered
  const more = { observed, calls, ...spentBy(parts.user) }
  if (!answered.done) {
    return { transition: { kind: 'continue', ...more }, progress: { ...begun, source } }
  }
  const scored = error === null ? { reward: parts.world.calculateReward() } : {}
  return { transition: { kind: 'end', ...more }, progress: { source, error, ...scored } }
}

type Read =
  | { readonly kind: 'action'; readonly action: TauAction }
  | { readonly kind: 'unreadable'; readonly answered: Answered }

/** The policy's action; an unreadable one becomes an observation it can learn from. */
function readAction(agent: TauAgent, { message, calls }: Reply): Read {
  const [attempt] = calls
  try {
    if (agent.tools.length > 0 && attempt) return { kind: 'action', action: toAction(attempt) }
    const action = agent.toAction({ ...message, content: textOf(message.content) })
    return { kind: 'action', action: withText(action) }
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    const text = `Error: ${error.message || 'an action needs a name and arguments'}`
    const source = attempt?.name ?? ''
    return {
      kind: 'unreadable',
      answered: { text, source, done: false, problem: 'malformed-call' },
    }
  }
}

function toAction(attempt: CallAttempt): TauAction {
  if (attempt.kind === 'malformed') throw new PythonError('ValueError', attempt.problem)
  const kwargs = attempt.arguments.trim() === '' ? new Map() : parseJson(attempt.arguments)
  if (!(kwargs instanceof Map)) {
    throw new PythonError('TypeError', `the arguments of ${attempt.name} must be a JSON object`)
  }
  return withText({ name: attempt.name, kwargs: kwargs as PythonDict })
}

/** Makes what is said to the user a text; the original breaks when it searches anything else for outputs. */
function withText(action: TauAction): TauAction {
  const content = action.kwargs.get('content')
  if (action.name !== RESPOND || typeof content === 'string') return action
  if (content === undefined) throw new PythonError('KeyError', "'content'")
  return { name: RESPOND, kwargs: new Map([['content', str(content)]]) }
}

async function takeAction(
  { world, user }: ConversationParts,
  action: TauAction,
  call: StepCall,
): Promise<Answered> {
  try {
    const step = world.step(action)
    if (step.kind === 'observed') {
      const isUnknown = !world.tools.some(tool => tool.function.name === action.name)
      const answered = { text: step.observation, source: action.name, done: step.done }
      if (isUnknown) return { ...answered, problem: 'unknown-tool' }
      return step.isMiscalled ? { ...answered, problem: 'invalid-arguments' } : answered
    }
    const text = await hearUser(user, step.content as string, call)
    return { text, source: 'user', done: text.includes(STOP) }
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    return {
      text: `Error: ${error.message}`,
      source: action.name,
      done: true,
      error: error.message,
    }
  }
}

async function hearUser(user: User, said: string, call: StepCall): Promise<string> {
  const before = call.replay?.observed?.findLast(message => message.role === 'user')
  if (before === undefined)
    return await across('user', call, async () => spoken(await user.answer(said, call)))
  const answer = textOf(before.content)
  user.recall({ kind: 'answer', said, answer }, call.replay?.spent as UserSpent | undefined)
  return answer
}

const EXTRA_CALL = 'Error: one call per turn; this one was not run.'

interface Observation {
  readonly reply: Reply
  readonly read: Read
  readonly text: string
}

/** The answer to the first call or to the words, and one to every further call. */
function observe(agent: TauAgent, { reply, read, text }: Observation): NonEmpty<Message> {
  const [first, ...others] = agent.tools.length > 0 ? reply.calls : []
  const refusals = others.map(attempt => toolMessage(attempt, EXTRA_CALL))
  const isWords = read.kind === 'action' && read.action.name === RESPOND
  if (first && !isWords) return [toolMessage(first, text), ...refusals]
  const said: Message = { role: 'user', content: isWords ? text : `API output: ${text}` }
  const [refusal, ...more] = refusals
  return refusal ? [refusal, ...more, said] : [said]
}

function toolMessage({ id, name }: CallAttempt, content: string): Message {
  return { role: 'tool', tool_call_id: id, ...(name !== undefined && { name }), content }
}

function recordCalls(
  { calls }: Reply,
  answered: Answered,
  { turn, seconds }: { readonly turn: number; readonly seconds: number },
): readonly CallRecord[] {
  return calls.map((attempt, index): CallRecord => {
    const record = { turn, id: attempt.id, tool: attempt.name ?? '', input: inputOf(attempt) }
    if (index > 0) return { ...record, output: EXTRA_CALL, problem: 'extra-call', seconds: 0 }
    const problem = answered.problem && { problem: answered.problem }
    return { ...record, output: answered.text, ...problem, seconds }
  })
}

function inputOf(attempt: CallAttempt): unknown {
  if (attempt.kind === 'malformed') return attempt.raw
  try {
    return JSON.parse(attempt.arguments)
  } catch {
    return attempt.arguments
  }
}
