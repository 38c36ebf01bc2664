import type { SpokenMessage, Tau2Message, ToolMessage } from './message.ts'
import { PythonError } from './program/values.ts'
import { SOLO_STOP } from './prompts.ts'
import type { Tau2World } from './world.ts'

/** Why a conversation ended. */
export type Termination =
  | 'user_stop'
  | 'agent_stop'
  | 'max_steps'
  | 'too_many_errors'
  | 'agent_error'
  | 'user_error'
  | 'timeout'
  | 'infrastructure_error'

/** Who is to act next. */
export type Role = 'agent' | 'user' | 'env'

/** When a conversation ends by itself. */
export interface OrchestratorLimits {
  /** @default 100 */
  readonly maxSteps?: number
  /** @default 10 */
  readonly maxErrors?: number
  /** Ends a conversation when a message has both words and calls. @default false */
  readonly validateCommunication?: boolean
}

const STOPS = ['###STOP###', '###TRANSFER###', '###OUT-OF-SCOPE###']
const AGENT_STOP = '###STOP###'

/** The words every conversation begins with. */
const FIRST_MESSAGE: SpokenMessage = {
  role: 'assistant',
  content: 'Hi! How can I help you today?',
  tool_calls: null,
  cost: 0,
}

const hasWords = ({ content }: SpokenMessage): boolean => content !== null && content.trim() !== ''

/** Whether a message of the user ends the conversation; one with calls never does. */
const isUserStop = ({ content, tool_calls }: SpokenMessage): boolean =>
  tool_calls === null && content !== null && STOPS.some(word => content.includes(word))

/** What changes as a conversation goes on. */
interface Progress {
  readonly messages: readonly Tau2Message[]
  readonly from: Role
  readonly to: Role
  readonly termination: Termination | null
  readonly steps: number
  readonly errors: number
}

/**
 * The original's turn-based conversation: whose turn it is, what ends it, what is counted. Who speaks
 * stands outside and hands its messages in.
 */
export class Orchestrator {
  readonly world: Tau2World
  readonly #limits: Required<OrchestratorLimits>
  readonly #solo: boolean
  #progress: Progress

  constructor(world: Tau2World, limits: OrchestratorLimits = {}, progress?: Progress) {
    this.world = world
    this.#solo = world.solo
    this.#limits = { maxSteps: 100, maxErrors: 10, validateCommunication: false, ...limits }
    this.#progress = progress ?? {
      messages: [],
      from: 'agent',
      to: 'agent',
      termination: null,
      steps: 0,
      errors: 0,
    }
  }

  get messages(): readonly Tau2Message[] {
    return this.#progress.messages
  }
  /** Who is to act next. */
  get turn(): Role {
    return this.#progress.to
  }
  get termination(): Termination | null {
    return this.#progress.termination
  }
  get steps(): number {
    return this.#progress.steps
  }
  get errors(): number {
    return this.#progress.errors
  }

  /** Begins: with the greeting, with a history, or, without a user, with the agent's first message. */
  begin(history: readonly Tau2Message[] = []): void {
    this.world.replay(history)
    if (history.length > 0) this.#resume(history)
    else if (!this.#solo) this.#set({ messages: [FIRST_MESSAGE], from: 'agent', to: 'user' })
    if (history.length > 0 || !this.#solo) this.#ready()
  }

  #ready(): void {
    if (this.#limits.validateCommunication) this.#checkMessage()
    this.world.sync()
  }

  #set(change: Partial<Progress>): void {
    this.#progress = { ...this.#progress, ...change }
  }

  #resume(history: readonly Tau2Message[]): void {
    requireHistory(history)
    const last = history.at(-1) as Tau2Message
    this.#set({ messages: [...history] })
    if (last.role === 'tool')
      this.#set({ from: 'env', to: last.requestor === 'user' ? 'user' : 'agent' })
    else if (last.role === 'assistant') {
      this.#set({ from: 'agent', to: last.tool_calls === null ? 'user' : 'env' })
      if (this.#isAgentStop(last)) this.#set({ termination: 'agent_stop' })
    } else if (last.role === 'user') {
      this.#set({ from: 'user', to: last.tool_calls === null ? 'agent' : 'env' })
      if (isUserStop(last)) this.#set({ termination: 'user_stop' })
    }
  }

  /** Only an agent without a user can stop by words. */
  #isAgentStop({ content }: SpokenMessage): boolean {
    return this.#solo && (content ?? '').includes(AGENT_STOP)
  }

  /** Takes what the agent says or calls. */
  takeAgent(given: SpokenMessage): void {
    const isFirst = this.#solo && this.messages.length === 0
    const message = this.#solo ? soloMessage(given) : given
    requireContent(message, 'AssistantMessage')
    const isStop = this.#isAgentStop(message)
    const isCall = message.tool_calls !== null
    this.#append(message)
    this.#set({ from: 'agent', to: isCall && !(isFirst && isStop) ? 'env' : 'user' })
    if (isStop) this.#set({ termination: 'agent_stop' })
    else if (this.#solo && !isCall) this.#set({ termination: 'agent_error' })
    if (isFirst) this.#ready()
    else this.#finishStep()
  }

  /** Takes what the user says or calls. */
  takeUser(message: SpokenMessage): void {
    requireContent(message, 'UserMessage')
    if (isUserStop(message)) this.#set({ termination: 'user_stop' })
    this.#append(message)
    this.#set({ from: 'user', to: message.tool_calls === null ? 'agent' : 'env' })
    this.#finishStep()
  }

  #append(...messages: readonly Tau2Message[]): void {
    this.#set({ messages: [...this.messages, ...messages] })
  }

  /** Runs the calls of the last message, in order. */
  runTools(): readonly ToolMessage[] {
    const last = this.messages.at(-1)
    const calls = last?.role === 'assistant' || last?.role === 'user' ? (last.tool_calls ?? []) : []
    const answers = calls.map((call): ToolMessage => {
      const { content, error, problem } = this.world.respond(call)
      if (error) this.#set({ errors: this.errors + 1 })
      return {
        role: 'tool',
        id: call.id,
        content,
        requestor: call.requestor,
        error,
        ...(problem && { problem }),
      }
    })
    if (answers.length === 0) throw new PythonError('IndexError', 'list index out of range')
    this.#append(...answers)
    this.#set({ from: 'env', to: this.#progress.from })
    this.#finishStep()
    return answers
  }

  #finishStep(): void {
    if (this.#limits.validateCommunication) this.#checkMessage()
    this.#set({ steps: this.steps + 1 })
    this.world.sync()
    this.#checkLimits()
  }

  /** The limits come after a stop of the same step and overwrite it, as in the original. */
  #checkLimits(): void {
    if (this.turn === 'env') return
    if (this.steps >= this.#limits.maxSteps) this.#set({ termination: 'max_steps' })
    if (this.errors >= this.#limits.maxErrors) this.#set({ termination: 'too_many_errors' })
  }

  #checkMessage(): void {
    const message = this.messages.at(-1)
    if (
      this.#progress.from === 'env' ||
      message === undefined ||
      message.role === 'tool' ||
      message.role === 'system'
    )
      return
    const isCall = message.tool_calls !== null
    const isWrong = isCall === hasWords(message)
    const isSoloWords =
      this.#solo && message.role === 'assistant' && hasWords(message) && !this.#isAgentStop(message)
    if (isWrong || isSoloWords) {
      this.#set({ termination: this.#progress.from === 'user' ? 'user_error' : 'agent_error' })
    }
  }

  /** What both sides cost, each `null` if one of its messages has no cost. */
  costs(): { readonly agent: number | null; readonly user: number | null } {
    return { agent: costOf(this.messages, 'assistant'), user: costOf(this.messages, 'user') }
  }

  /** A conversation that goes its own way from here. */
  fork(): Orchestrator {
    return new Orchestrator(this.world.fork(), this.#limits, this.#progress)
  }
}

function costOf(messages: readonly Tau2Message[], role: 'assistant' | 'user'): number | null {
  let sum: number | null = 0
  for (const message of messages) {
    if (message.role !== role) continue
    const { cost } = message
    sum = sum === null || cost === null || cost === undefined ? null : sum + cost
  }
  return sum
}

/** An agent without a user may only call; one that calls `done` has stopped, whatever else it calls. */
function soloMessage(message: SpokenMessage): SpokenMessage {
  if (message.tool_calls === null)
    throw new PythonError('ValueError', 'LLMSoloAgent only supports tool calls.')
  const isDone = message.tool_calls.some(({ name }) => name === SOLO_STOP)
  return isDone ? { ...message, content: AGENT_STOP, tool_calls: null } : message
}

function requireContent(message: SpokenMessage, type: string): void {
  if (hasWords(message) || message.tool_calls !== null) return
  throw new PythonError(
    'ValueError',
    `${type} must have either content or tool_calls. Got ${type}\nis_final_chunk: True`,
  )
}

function requireHistory(history: readonly Tau2Message[]): void {
  let expected = 0
  let requestor: string | null = null
  for (const message of history) {
    if (message.role === 'system')
      throw new PythonError('ValueError', 'Invalid message type: SystemMessage')
    if (message.role === 'tool') {
      if (expected === 0 || requestor === null)
        throw new PythonError('ValueError', 'No tool messages expected.')
      if (requestor !== message.requestor) {
        throw new PythonError(
          'ValueError',
          `Got tool message from ${message.requestor}, expected ${requestor}.`,
        )
      }
      expected--
    } else {
      requireContent(message, message.role === 'user' ? 'UserMessage' : 'AssistantMessage')
      if (message.tool_calls !== null && expected > 0) {
        throw new PythonError(
          'ValueError',
          `${expected} tool messages are missing. Got ${message.role} message.`,
        )
      }
      // As in the original, words do not reset how many answers are expected.
      if (message.tool_calls !== null) expected = message.tool_calls.length
      requestor = message.tool_calls === null ? null : message.role
    }
  }
}

/** The messages that the agent sees. */
export function agentView(messages: readonly Tau2Message[]): readonly Tau2Message[] {
  return messages.filter(message => {
    if (message.role === 'user') return message.tool_calls === null
    return (
      message.role === 'assistant' || (message.role === 'tool' && message.requestor === 'assistant')
    )
  })
}

/** The messages that the user sees, from where the user stands: their own are those of the assistant. */
export function userView(messages: readonly Tau2Message[]): readonly Tau2Message[] {
  return messages.flatMap((message): Tau2Message[] => {
    if (message.role === 'user')
      return [{ role: 'assistant', content: message.content, tool_calls: message.tool_calls }]
    if (message.role === 'assistant') {
      if (message.tool_calls !== null || !hasWords(message)) return []
      return [{ role: 'user', content: message.content, tool_calls: null }]
    }
    if (message.role === 'tool' && message.requestor === 'user') {
      return [
        {
          role: 'tool',
          id: message.id,
          content: message.content,
          requestor: 'assistant',
          error: false,
        },
      ]
    }
    return []
  })
}
