/** A piece of text in a content. */
export interface TextPart {
  readonly type: 'text'
  readonly text: string
}

/** An image as OpenAI's chat completions have it, or as Anthropic's messages do. */
export type ImagePart =
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | {
      readonly type: 'image'
      readonly source:
        | { readonly type: 'base64'; readonly media_type: string; readonly data: string }
        | { readonly type: 'url'; readonly url: string }
    }

/** A piece of a message's content. */
export type ContentPart = TextPart | ImagePart

/** What a message says: plain text, or a list of parts. */
export type Content = string | readonly ContentPart[]

/** A call of a tool, as the OpenAI schema has it: `arguments` is JSON text. */
export interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** Instructions to the policy. */
export interface SystemMessage {
  readonly role: 'system' | 'developer'
  readonly content: Content
}

/** What a person, real or simulated, says. */
export interface UserMessage {
  readonly role: 'user'
  readonly content: Content
}

/** What the policy said: words, reasoning, calls of tools. */
export interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: Content | null
  readonly reasoning_content?: string
  readonly tool_calls?: readonly ToolCall[]
}

/** What a tool answered. */
export interface ToolMessage {
  readonly role: 'tool'
  readonly content: Content
  readonly tool_call_id: string
  readonly name?: string
}

/** What people and templates see: a role and content, in the OpenAI chat-completions schema. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** A tool as it is advertised to a policy, in the OpenAI schema; `parameters` is a JSON schema. */
export interface ToolDefinition {
  readonly type: 'function'
  readonly function: {
    readonly name: string
    readonly description?: string
    readonly parameters: Readonly<Record<string, unknown>>
  }
}

/** A call that the policy tried to make. A malformed one keeps its raw text and what was wrong with it. */
export type CallAttempt =
  | {
      readonly kind: 'parsed'
      readonly id: string
      readonly name: string
      /** A JSON object as text. */
      readonly arguments: string
    }
  | {
      readonly kind: 'malformed'
      readonly id: string
      /** The tool it seems to have meant, if that could be read. */
      readonly name?: string
      readonly raw: string
      readonly problem: string
    }

/**
 * What a policy sampled in one turn, as people read it. The raw text of malformed calls stays in
 * the message's content, so that nothing the policy said is lost.
 */
export interface Reply {
  readonly message: AssistantMessage
  /** The calls in the order they were made, malformed ones included. */
  readonly calls: readonly CallAttempt[]
}

/** The images of messages, in their order. */
export function imagesIn(messages: readonly Pick<Message, 'content'>[]): readonly ImagePart[] {
  const images: ImagePart[] = []
  for (const { content } of messages) {
    if (typeof content === 'string' || content === null) continue
    for (const part of content) if (part.type !== 'text') images.push(part)
  }
  return images
}

/** The text of a message's content; parts that are not text are left out. */
export function textOf(content: Content | null): string {
  if (content === null) return ''
  if (typeof content === 'string') return content
  return content.map(part => (part.type === 'text' ? part.text : '')).join('')
}
