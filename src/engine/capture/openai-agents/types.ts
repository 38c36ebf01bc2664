/** An item of a conversation in the OpenAI Agents SDK: what is read of it. */
export interface InputItem {
  readonly type?: string
  readonly role?: string
  readonly content?: unknown
  readonly rawContent?: unknown
  readonly callId?: string
  readonly name?: string
  readonly arguments?: string
  readonly output?: unknown
}

/** What the OpenAI Agents SDK asks of a model. */
export interface AgentsRequest {
  readonly systemInstructions?: string | undefined
  readonly input: string | readonly object[]
  readonly modelSettings: {
    readonly temperature?: number | undefined
    readonly topP?: number | undefined
    readonly maxTokens?: number | undefined
    readonly toolChoice?: string | undefined
    readonly parallelToolCalls?: boolean | undefined
  }
  readonly tools: readonly object[]
  readonly handoffs: readonly {
    readonly toolName: string
    readonly toolDescription: string
    readonly inputJsonSchema: object
  }[]
  readonly outputType: unknown
  readonly signal?: AbortSignal | undefined
}

/** What a model gives back there. */
export type OutputItem =
  | { type: 'reasoning'; content: { type: 'input_text'; text: string }[] }
  | {
      type: 'message'
      role: 'assistant'
      status: 'completed' | 'incomplete'
      content: { type: 'output_text'; text: string }[]
    }
  | { type: 'function_call'; callId: string; name: string; arguments: string; status: 'completed' }

/** Tokens in the words of that SDK. */
export interface AgentsUsage {
  requests: number
  inputTokens: number
  outputTokens: number
  totalTokens: number
  inputTokensDetails: Record<string, number>[]
  outputTokensDetails: Record<string, number>[]
  requestUsageEntries: undefined
  add(other: unknown): void
}

/** One answer. */
export interface AgentsResponse {
  usage: AgentsUsage
  output: OutputItem[]
  responseId: string
}

/** An answer as it comes. */
export type AgentsEvent =
  | { type: 'response_started' }
  | { type: 'output_text_delta'; delta: string }
  | {
      type: 'response_done'
      response: {
        id: string
        usage: { inputTokens: number; outputTokens: number; totalTokens: number }
        output: OutputItem[]
      }
    }

/** A model as the OpenAI Agents SDK takes one. */
export interface AgentsModel {
  getResponse(request: AgentsRequest): Promise<AgentsResponse>
  getStreamedResponse(request: AgentsRequest): AsyncIterable<AgentsEvent>
}

/** What gives models there: whatever name is asked for, it is the policy of the attempt. */
export interface AgentsModelProvider {
  getModel(name?: string): AgentsModel
}
