import { createHash } from 'node:crypto'
import { type Message, type ToolCall, type ToolDefinition, textOf } from '../core/message.ts'

/**
 * What tells messages apart, one key per message. Ids of calls, white space around texts and the
 * layout of JSON do not: frameworks write these as they like when they say a message again.
 */
export function messageKeys(messages: readonly Message[]): readonly string[] {
  let calls: readonly ToolCall[] = []
  return messages.map(message => {
    if (message.role === 'tool') {
      const call = calls.findIndex(({ id }) => id === message.tool_call_id)
      return digest(['tool', call, contentKey(message.content)])
    }
    calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
    if (message.role !== 'assistant') return digest([message.role, contentKey(message.content)])
    const { content, reasoning, calls: called } = saidKeys(message)
    return digest(['assistant', content, reasoning, called])
  })
}

/** The parts of what the policy said that are compared, each as a text. */
export function saidKeys(message: Extract<Message, { role: 'assistant' }>): {
  readonly content: string
  readonly reasoning: string
  readonly calls: string
} {
  const calls = (message.tool_calls ?? []).map(({ function: { name, arguments: text } }) => [
    name,
    plainJson(text),
  ])
  return {
    content: textOf(message.content).trim(),
    reasoning: (message.reasoning_content ?? '').trim(),
    calls: JSON.stringify(calls),
  }
}

/** What tells lists of tools apart. */
export function toolsKey(tools: readonly ToolDefinition[]): string {
  return tools.length === 0 ? 'none' : digest(tools)
}

/** The key of a conversation: of its tools and all its messages, so that one lookup finds it. */
export function chainKey(before: string, key: string): string {
  return digest([before, key])
}

/** A short name for tokens. */
export function tokensKey(ids: Int32Array): string {
  const bytes = new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength)
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16)
}

function contentKey(content: Message['content']): unknown {
  if (content === null || typeof content === 'string') return (content ?? '').trim()
  return content.every(({ type }) => type === 'text') ? textOf(content).trim() : content
}

/** JSON with its keys in order; what is no JSON stays the text it is. */
function plainJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), sorted)
  } catch {
    return text
  }
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22)
}
