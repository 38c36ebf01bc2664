import type { AssistantMessage, Message, ToolDefinition } from '@espalier/text'
import type { Call } from './call.ts'

/** Messages in, message out: a renderer with a policy, or a chat endpoint. */
export interface Speaker {
  readonly name: string
  say(messages: readonly Message[], call: SpeakCall): Promise<Speech>
}

/** One request to a speaker. */
export interface SpeakCall extends Call {
  /** @default 0 */
  readonly temperature?: number
  /** @default 1024 */
  readonly maxTokens?: number
  readonly seed?: number
  /** Tools it may call; what it calls stands in the message. @default none */
  readonly tools?: readonly ToolDefinition[]
}

/** What a speaker answered, and what that cost. */
export interface Speech {
  readonly message: AssistantMessage
  /** `length`: the answer was cut. */
  readonly finish: 'stop' | 'length'
  readonly usage: { readonly prompt: number; readonly sampled: number }
}
