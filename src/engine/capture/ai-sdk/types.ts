/** A part of a prompt's message in the AI SDK, any version: what is read of it. */
export interface PromptPart {
  readonly type: string
  readonly text?: string
  readonly toolCallId?: string
  readonly toolName?: string
  readonly input?: unknown
  readonly output?: { readonly type: string; readonly value?: unknown; readonly reason?: string }
  readonly data?: unknown
  readonly url?: unknown
  readonly mediaType?: string
}

/** A message of a prompt in the AI SDK. */
export interface PromptMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string | readonly PromptPart[]
}

/** A tool on offer in the AI SDK; those that a provider runs itself have another type. */
export interface OfferedTool {
  readonly type: string
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema?: unknown
}

/** What the AI SDK asks of a model; versions 2, 3 and 4 of its provider contract agree on these. */
export interface ModelCall {
  readonly prompt: readonly PromptMessage[]
  readonly maxOutputTokens?: number | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  readonly topK?: number | undefined
  readonly stopSequences?: readonly string[] | undefined
  readonly seed?: number | undefined
  readonly tools?: readonly OfferedTool[] | undefined
  readonly toolChoice?: { readonly type: string; readonly toolName?: string } | undefined
  readonly responseFormat?: { readonly type: string; readonly schema?: unknown } | undefined
  readonly abortSignal?: AbortSignal | undefined
}

/** Why an answer ended, in the words of version 2. */
export type FinishWord = 'stop' | 'length' | 'tool-calls' | 'other'

/** How each version of the contract writes the finish reason and the token usage. */
export interface Wordings {
  v2: {
    finish: FinishWord
    usage: {
      inputTokens: number
      outputTokens: number
      totalTokens: number
      cachedInputTokens?: number
    }
  }
  v3: { finish: { unified: FinishWord; raw: string }; usage: DetailedUsage }
  v4: { finish: { unified: FinishWord; raw: string }; usage: DetailedUsage }
}

interface DetailedUsage {
  inputTokens: {
    total: number
    noCache: number | undefined
    cacheRead: number | undefined
    cacheWrite: undefined
  }
  outputTokens: { total: number; text: undefined; reasoning: undefined }
}

/** A version of the AI SDK's provider contract. */
export type ProviderVersion = keyof Wordings

/** A piece of an answer. */
export type AnswerPart =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: string }

/** Provider metadata beside an answer: which answer of the capture it was. */
export type AnswerMetadata = { espalier: { answer: string; version: number } }

/** A whole answer. */
export interface Generated<Version extends ProviderVersion> {
  content: AnswerPart[]
  finishReason: Wordings[Version]['finish']
  usage: Wordings[Version]['usage']
  warnings: never[]
  providerMetadata: AnswerMetadata
  response: { id: string; modelId: string }
}

/** An answer as it comes. */
export type StreamPart<Version extends ProviderVersion> =
  | { type: 'stream-start'; warnings: never[] }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-end'; id: string }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: string }
  | { type: 'response-metadata'; id: string; modelId: string }
  | {
      type: 'finish'
      finishReason: Wordings[Version]['finish']
      usage: Wordings[Version]['usage']
      providerMetadata: AnswerMetadata
    }
  | { type: 'error'; error: unknown }

/** A language model as the AI SDK takes one. */
export interface AgentModel<Version extends ProviderVersion = 'v3'> {
  readonly specificationVersion: Version
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: Record<string, RegExp[]>
  doGenerate(call: ModelCall): Promise<Generated<Version>>
  doStream(call: ModelCall): Promise<{ stream: ReadableStream<StreamPart<Version>> }>
}
