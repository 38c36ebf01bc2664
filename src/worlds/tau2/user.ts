import {
  type AssistantMessage,
  type Message,
  type ToolCall,
  type ToolDefinition,
  textOf,
} from '@espalier/text'
import { dumps, parseJson } from '@espalier/text/python'
import type { Call } from '../../base/core/call.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { UserReplyError } from '../../engine/environments/users/strategy.ts'
import type { Tau2Domain } from './domain.ts'
import type { SpokenMessage, Tau2Message, Tau2ToolCall } from './message.ts'
import { userView } from './orchestrator.ts'
import { PythonError, plain, type Value } from './program/values.ts'
import { advertised, toolDefinitions } from './schema.ts'
import type { Requestor, Tau2Task } from './task.ts'

/**
 * The tools a simulated user has for a task, in the order of the toolkit; `null` for none, which is
 * also what the original makes of a task that names a tool its toolkit lacks.
 */
export function userToolNames(
  { user }: Tau2Domain,
  { userTools }: Tau2Task,
): readonly string[] | null {
  if (user === null) return null
  const all = advertised(user).map(tool => tool.name)
  if (userTools === null) return all
  if (userTools.length === 0 || userTools.some(name => !all.includes(name))) return null
  return all.filter(name => userTools.includes(name))
}

/** The definitions of the same tools. */
export function userTools(domain: Tau2Domain, task: Tau2Task): readonly ToolDefinition[] {
  const names = userToolNames(domain, task)
  if (names === null || domain.user === null) return []
  return toolDefinitions(domain.user).filter(tool => names.includes(tool.function.name))
}

/** What a user gets before each of their turns. */
export interface UserTurn {
  /** The system prompt. */
  readonly system: string
  /** The whole conversation; the user's own code leaves out what users may not see. */
  readonly messages: readonly Tau2Message[]
  readonly tools: readonly ToolDefinition[]
  readonly seed: number
}

/** What a user said, and the tokens used if a model plays them. */
export interface UserSpeech {
  readonly message: SpokenMessage
  readonly usage?: { readonly prompt: number; readonly sampled: number }
}

/** The person the agent talks to. It remembers nothing: all it knows is the conversation. */
export type Tau2User = (turn: UserTurn, call: Call) => Promise<UserSpeech>

/** A user played by a model. */
export function modelUser(
  speaker: Speaker,
  { temperature, retries }: { readonly temperature: number; readonly retries: number },
): Tau2User {
  return async ({ system, messages, tools, seed }, call) => {
    const view = userView(messages).map(toMessage)
    for (let attempt = 0; ; attempt++) {
      const speech = await speaker.say([{ role: 'system', content: system }, ...view], {
        signal: call.signal,
        temperature,
        tools,
        seed: (seed + view.length + attempt * 1009) % 2 ** 31,
      })
      try {
        return { message: fromAssistant(speech.message, 'user'), usage: speech.usage }
      } catch (error) {
        if (!(error instanceof UserReplyError) || attempt >= retries) throw error
      }
    }
  }
}

/** A user who says fixed lines one after the other, and the last one for ever. */
export function lineUser(lines: readonly [string, ...string[]]): Tau2User {
  return async ({ messages }) => {
    const said = messages.filter(({ role }) => role === 'user').length
    const content = lines[Math.min(said, lines.length - 1)] as string
    return { message: { role: 'user', content, tool_calls: null, cost: 0 } }
  }
}

/** A real person: `ask` shows a text and gives what was typed. */
export function typingUser(ask: (text: string, call: Call) => Promise<string>): Tau2User {
  return async ({ system, messages }, call) => {
    const last = messages.at(-1)?.content ?? ''
    const content = await ask(messages.length === 1 ? `${system}\n\n${last}` : last, call)
    return { message: { role: 'user', content, tool_calls: null, cost: 0 } }
  }
}

/** A message as chat models read it. */
export function toMessage(message: Tau2Message): Message {
  if (message.role === 'system') return { role: 'system', content: message.content }
  if (message.role === 'tool')
    return { role: 'tool', tool_call_id: message.id, content: message.content ?? '' }
  if (message.role === 'user') return { role: 'user', content: message.content ?? '' }
  const calls = message.tool_calls?.map(toToolCall)
  return { role: 'assistant', content: message.content, ...(calls && { tool_calls: calls }) }
}

const toToolCall = ({ id, name, arguments: given }: Tau2ToolCall): ToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: dumps(plain(given)) },
})

/** What a chat model said, as one side of the conversation; an empty list of calls is none. */
function fromAssistant(
  { content, tool_calls = [] }: AssistantMessage,
  requestor: Requestor,
): SpokenMessage {
  const calls = tool_calls.map(
    ({ id, function: { name, arguments: text } }): Tau2ToolCall => ({
      id,
      name,
      arguments: readArguments(text),
      requestor,
    }),
  )
  const words = content === null ? null : textOf(content)
  if ((words === null || words.trim() === '') && calls.length === 0) {
    throw new UserReplyError('The user neither said nor did anything.')
  }
  return { role: requestor, content: words, tool_calls: calls.length === 0 ? null : calls }
}

function readArguments(text: string): Tau2ToolCall['arguments'] {
  let read: Value
  try {
    read = parseJson(text.trim() === '' ? '{}' : text) as Value
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    throw new UserReplyError(
      `The user called a tool with arguments that are no JSON: ${error.message}`,
    )
  }
  if (read instanceof Map) return read
  throw new UserReplyError('The user called a tool with arguments that are no object.')
}
