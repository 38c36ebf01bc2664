import { createHash, type Hash, hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type Message, type ToolCall, type ToolDefinition, textOf } from '@espalier/text'
import type { ImagePlace } from '../../base/core/image.ts'
import type { TokenBuffer } from '../rollout/token-buffer.ts'

/**
 * One key per message, equal for messages that say the same. Ids of calls, white space around texts
 * and the layout of JSON do not count: frameworks change them when they repeat a message.
 */
export function messageKeys(messages: readonly Message[], before?: Keyed): readonly string[] {
  let calls: readonly ToolCall[] = []
  const known = before?.keys.list ?? []
  let isSame = before !== undefined
  return messages.map((message, index) => {
    const answered = calls
    if (message.role !== 'tool') calls = callsOf(message)
    // Comparing a text is far cheaper than hashing it.
    isSame &&= isDeepStrictEqual(message, before?.messages[index])
    return isSame ? known[index]! : messageKey(message, answered)
  })
}

/** Messages and their keys. */
export interface Keyed {
  readonly messages: readonly Message[]
  readonly keys: Pick<Keys, 'list'>
}

/** The keys of a conversation, made when something is compared with it: often nothing ever is. */
export class Keys {
  #make: (() => readonly string[]) | undefined
  #list: readonly string[] = []

  constructor(make: () => readonly string[]) {
    this.#make = make
  }

  get list(): readonly string[] {
    if (!this.#make) return this.#list
    this.#list = this.#make()
    this.#make = undefined
    return this.#list
  }
}

const callsOf = (message: Message): readonly ToolCall[] =>
  message.role === 'assistant' ? (message.tool_calls ?? []) : []

function messageKey(message: Message, answered: readonly ToolCall[]): string {
  if (message.role === 'tool') {
    const call = answered.findIndex(({ id }) => id === message.tool_call_id)
    return contentKey(`tool ${call}`, message.content)
  }
  if (message.role !== 'assistant') return contentKey(message.role, message.content)
  const { content, reasoning, calls } = saidKeys(message)
  return digest(['assistant', content, reasoning, calls])
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

const toolsKeys = new WeakMap<readonly ToolDefinition[], string>()

/** A key for a list of tools; a list that a run shares is hashed once. */
export function toolsKey(tools: readonly ToolDefinition[]): string {
  if (tools.length === 0) return 'none'
  const known = toolsKeys.get(tools) ?? digest(tools)
  toolsKeys.set(tools, known)
  return known
}

const digested = new WeakMap<TokenBuffer, { length: number; readonly hash: Hash }>()

/** Up to this many tokens, hashing all again is cheaper than keeping a running hash. */
const few = 1024

/** A short key for the tokens of a path and the images that they show: others of one size have the same tokens. */
export function tokensKey(tokens: TokenBuffer, images: readonly ImagePlace[]): string {
  const key = keyOf(tokens)
  if (images.length === 0) return key
  const shown = images.map(({ digest }) => digest).join(' ')
  return hash('sha256', `${key} ${shown}`, 'hex').slice(0, 16)
}

/** On long paths only the tokens since the last call are hashed. */
function keyOf(tokens: TokenBuffer): string {
  if (tokens.length <= few) return hash('sha256', bytesOf(tokens.view()), 'hex').slice(0, 16)
  const known = digested.get(tokens) ?? { length: 0, hash: createHash('sha256') }
  const added = tokens.view(known.length)
  known.hash.update(bytesOf(added))
  known.length = tokens.length
  digested.set(tokens, known)
  return known.hash.copy().digest('hex').slice(0, 16)
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** A text is hashed as it is: writing a long one as JSON costs more than hashing it. */
function contentKey(who: string, content: Message['content']): string {
  if (Array.isArray(content) && content.some(({ type }) => type !== 'text')) {
    return digest([who, content])
  }
  return digestText(`${who}: ${textOf(content).trim()}`)
}

/** JSON with its keys in order; text that is not JSON stays as it is. */
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
  return digestText(JSON.stringify(value))
}

function digestText(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22)
}
