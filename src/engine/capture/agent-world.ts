import type { AssistantMessage, Message, Reply, ToolDefinition } from '@espalier/text'
import { whenAborted } from '../../base/core/call.ts'
import type { OpenCall, StepCall, Task, Transition, World } from '../../base/core/environment.ts'
import type { Json, NonEmpty } from '../../base/core/ids.ts'
import type { CallRecord } from '../../base/core/tool.ts'
import { NotSteppable } from '../environments/play.ts'
import type { AgentFunction } from './agent.ts'
import { inAttempt } from './attempt-context.ts'
import { recordCall } from './call-record.ts'
import type { ChatAnswer, ChatCall, ChatRequest } from './contract.ts'
import { tellAgain } from './deltas.ts'
import { makeSeatHooks } from './hooks.ts'
import { messageKeys } from './message-key.ts'
import { plainJson } from './plain-json.ts'

/** What an agent did next: it asked, it returned, or it threw. */
type Next =
  | {
      readonly kind: 'asks'
      readonly seat: string
      readonly request: ChatRequest
      answer(reply: Reply): void
    }
  | { readonly kind: 'returns'; readonly result: unknown }
  | { readonly kind: 'throws'; readonly error: unknown }

/**
 * An agent as a world that others step, for checks and demonstrations: its first request is the
 * opening, and a reply answers its latest request. This works only for agents that ask one request
 * at a time, in one conversation per seat; any agent can be rolled.
 */
export async function openAgentWorld<Data>(
  played: PlayedAgent<Data>,
  task: Task<Data>,
  call: OpenCall,
): Promise<World> {
  call.signal.throwIfAborted()
  const playing = startAgent(played, task, call)
  const first = await playing.next()
  if (first.kind === 'throws') throw first.error
  let now = first
  const said = new Map<string, readonly Message[]>()
  const { messages, tools } = first.kind === 'asks' ? first.request : silence
  return {
    opening: messages as NonEmpty<Message>,
    tools,
    async step(action, { turn }: StepCall): Promise<Transition> {
      if (now.kind !== 'asks') return { kind: 'end' }
      const { message } = action
      said.set(now.seat, [...now.request.messages, message])
      now.answer(withOwnIds(action, turn))
      if (playing.waiting() > 0) throw new NotSteppable('asks several things at one time')
      const next = await playing.next()
      if (next.kind === 'throws') throw next.error
      now = next
      const recorded = (observed: readonly Message[]): readonly CallRecord[] =>
        (message.tool_calls ?? []).map(each => recordCall(each, { turn, tools, observed }))
      if (next.kind === 'returns') return { kind: 'end', calls: recorded([]) }
      const before = said.get(next.seat) ?? []
      const observed = observedIn(next.request, before, {
        isSeated: played.seats !== undefined,
      }).map(each => withoutOwnId(each, message)) as [Message, ...Message[]]
      return { kind: 'continue', observed, calls: recorded(observed) }
    },
    report: () => (now.kind === 'returns' ? plainJson(now.result) : null) as Json,
    async [Symbol.asyncDispose]() {
      playing.stop()
    },
  }
}

const silence: { readonly messages: NonEmpty<Message>; readonly tools: readonly ToolDefinition[] } =
  { messages: [{ role: 'user', content: '' }], tools: [] }

/** An agent as it is played. */
export interface PlayedAgent<Data> {
  readonly agent: AgentFunction<Data>
  readonly seats?: readonly string[]
}

/** An agent that runs, and waits whenever it asked. */
interface Playing {
  next(): Promise<Next>
  /** How many things it did that nobody has taken yet. */
  waiting(): number
  stop(): void
}

/** Runs an agent whose requests wait until somebody takes and answers them. */
export function startAgent<Data>(
  { agent, seats }: PlayedAgent<Data>,
  task: Task<Data>,
  { signal: outer, seed }: Pick<OpenCall, 'signal' | 'seed'>,
): Playing {
  const stop = new AbortController()
  const signal = AbortSignal.any([outer, stop.signal])
  const came: Next[] = []
  let taker: ((next: Next) => void) | undefined
  const tell = (next: Next): void => {
    if (taker) taker(next)
    else came.push(next)
    taker = undefined
  }
  const respond = (request: ChatRequest, call: ChatCall): Promise<readonly ChatAnswer[]> =>
    new Promise((resolve, reject) => {
      const release = whenAborted(signal, () => reject(signal.reason))
      const answer = (reply: Reply): void => {
        release()
        const answers = [toAnswer(reply)]
        tellAgain(call, answers)
        resolve(answers)
      }
      tell({ kind: 'asks', seat: call.seat ?? '', request, answer })
    })
  const capture = { respond, countTokens: async () => 0 }
  const hooks = makeSeatHooks({ capture, signal, policy: 'played' }, seats)
  const agentCall = { ...hooks, task: task.data, id: task.id, seed, signal }
  inAttempt(hooks, async () => agent(agentCall)).then(
    result => tell({ kind: 'returns', result }),
    (error: unknown) => tell({ kind: 'throws', error }),
  )
  return {
    waiting: () => came.length,
    next: () =>
      new Promise(resolve => {
        const next = came.shift()
        if (next) resolve(next)
        else taker = resolve
      }),
    // An abort, which frameworks do not report as an error.
    stop: () => stop.abort(new DOMException('the world was disposed of', 'AbortError')),
  }
}

/** What an agent adds to the conversation so far; with several seats, the whole conversation of the seat that asks. */
function observedIn(
  { messages }: ChatRequest,
  before: readonly Message[],
  { isSeated }: { readonly isSeated: boolean },
): NonEmpty<Message> {
  const [known, now] = [messageKeys(before), messageKeys(messages)]
  const observed = messages.slice(before.length)
  const goesOn = known.every((key, index) => key === now[index])
  if (goesOn && observed.length > 0) return observed as [Message, ...Message[]]
  if (isSeated) return messages as NonEmpty<Message>
  throw new NotSteppable('goes on with another conversation')
}

/** A reply whose calls have ids of their own, as some frameworks refuse one that they have seen. */
export function withOwnIds({ message, calls }: Reply, turn: number): Reply {
  const { tool_calls: made } = message
  if (!made) return { message, calls }
  const named = made.map((call, index) => ({ ...call, id: ownId(turn, index) }))
  return { message: { ...message, tool_calls: named }, calls }
}

const ownId = (turn: number, index: number): string => `played_${turn}_${index}`

/** A result under the id that its call has for whoever plays. */
function withoutOwnId(message: Message, { tool_calls: made = [] }: AssistantMessage): Message {
  if (message.role !== 'tool') return message
  const index = Number(/^played_\d+_(\d+)$/.exec(message.tool_call_id ?? '')?.[1] ?? Number.NaN)
  const id = made[index]?.id
  return id === undefined ? message : { ...message, tool_call_id: id }
}

function toAnswer({ message }: Reply): ChatAnswer {
  const none = new Int32Array(0)
  return {
    id: 'played',
    message,
    finish: (message.tool_calls ?? []).length > 0 ? 'tool-calls' : 'stop',
    unmet: [],
    usage: { prompt: 0, sampled: 0 },
    tokens: { prompt: none, sampled: none, logprobs: null, version: 0 },
  }
}
