import { textOf } from '@espalier/text'
import type { Capture, ChatAnswer } from '../contract.ts'
import { readAgentsRequest } from './read.ts'
import type {
  AgentsEvent,
  AgentsModelProvider,
  AgentsRequest,
  AgentsUsage,
  OutputItem,
} from './types.ts'

/** What answers the requests of a provider's models. */
export interface ProviderOptions {
  readonly respond: Capture['respond']
  /** Ends with the attempt. */
  readonly signal: AbortSignal
}

/** A model provider for the OpenAI Agents SDK over a capture. */
export function agentsModelProvider({ respond, signal }: ProviderOptions): AgentsModelProvider {
  const ask = async (request: AgentsRequest): Promise<ChatAnswer> => {
    const stopped = request.signal ? AbortSignal.any([request.signal, signal]) : signal
    const answers = await respond(readAgentsRequest(request), { signal: stopped })
    return answers[0]!
  }
  const model = {
    async getResponse(request: AgentsRequest) {
      const answer = await ask(request)
      return { usage: usageOf(answer), output: outputOf(answer), responseId: answer.id }
    },
    getStreamedResponse: (request: AgentsRequest) => streamed(() => ask(request)),
  }
  return { getModel: () => model }
}

async function* streamed(ask: () => Promise<ChatAnswer>): AsyncGenerator<AgentsEvent> {
  yield { type: 'response_started' }
  const answer = await ask()
  const delta = textOf(answer.message.content)
  if (delta !== '') yield { type: 'output_text_delta', delta }
  const { prompt: inputTokens, sampled: outputTokens } = answer.usage
  const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
  yield { type: 'response_done', response: { id: answer.id, usage, output: outputOf(answer) } }
}

function usageOf({ usage: { prompt, sampled } }: ChatAnswer): AgentsUsage {
  return {
    requests: 1,
    inputTokens: prompt,
    outputTokens: sampled,
    totalTokens: prompt + sampled,
    inputTokensDetails: [],
    outputTokensDetails: [],
    requestUsageEntries: undefined,
    // The runner sums usage in an object of its own and never calls this.
    add() {},
  }
}

function outputOf({ message, finish }: ChatAnswer): OutputItem[] {
  const { reasoning_content: reasoning = '', content, tool_calls: calls = [] } = message
  const text = textOf(content)
  const status = finish === 'length' ? 'incomplete' : 'completed'
  return [
    ...(reasoning === '' ? [] : [reasoningItem(reasoning)]),
    ...(text === '' && calls.length > 0
      ? []
      : [
          {
            type: 'message' as const,
            role: 'assistant' as const,
            status: status as 'completed' | 'incomplete',
            content: [{ type: 'output_text' as const, text }],
          },
        ]),
    ...calls.map(({ id, function: called }) => ({
      type: 'function_call' as const,
      callId: id,
      ...called,
      status: 'completed' as const,
    })),
  ]
}

function reasoningItem(text: string): OutputItem {
  return { type: 'reasoning', content: [{ type: 'input_text', text }] }
}
