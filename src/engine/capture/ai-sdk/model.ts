import { textOf } from '@espalier/text'
import type { Capture, ChatAnswer, ChatDelta } from '../contract.ts'
import { readCall } from './read.ts'
import type {
  AgentModel,
  AnswerMetadata,
  AnswerPart,
  FinishWord,
  Generated,
  ModelCall,
  ProviderVersion,
  StreamPart,
  Wordings,
} from './types.ts'

/** What answers a model's calls. */
export interface ModelOptions {
  readonly respond: Capture['respond']
  /** Ends with the attempt. */
  readonly signal: AbortSignal
  readonly modelId: string
}

/** The models of all versions of the AI SDK's provider contract, over one capture. */
export function aiSdkModels(options: ModelOptions): {
  readonly [Version in ProviderVersion]: AgentModel<Version>
} {
  return {
    v2: aiSdkModel('v2', wordings.v2, options),
    v3: aiSdkModel('v3', wordings.v3, options),
    v4: aiSdkModel('v4', wordings.v4, options),
  }
}

type Wording<Version extends ProviderVersion> = (answer: ChatAnswer) => Wordings[Version]

const wordings: { readonly [Version in ProviderVersion]: Wording<Version> } = {
  v2: ({ finish, usage: { prompt, sampled, cached } }) => ({
    finish: wordOf(finish),
    usage: {
      inputTokens: prompt,
      outputTokens: sampled,
      totalTokens: prompt + sampled,
      ...(cached !== undefined && { cachedInputTokens: cached }),
    },
  }),
  v3: detailed,
  v4: detailed,
}

function detailed({ finish, usage: { prompt, sampled, cached } }: ChatAnswer): Wordings['v3'] {
  return {
    finish: { unified: wordOf(finish), raw: finish },
    usage: {
      inputTokens: {
        total: prompt,
        noCache: cached === undefined ? undefined : prompt - cached,
        cacheRead: cached,
        cacheWrite: undefined,
      },
      outputTokens: { total: sampled, text: undefined, reasoning: undefined },
    },
  }
}

function wordOf(finish: ChatAnswer['finish']): FinishWord {
  return finish === 'aborted' ? 'other' : finish
}

function aiSdkModel<Version extends ProviderVersion>(
  specificationVersion: Version,
  wording: Wording<Version>,
  options: ModelOptions,
): AgentModel<Version> {
  const { modelId } = options
  const ask = async (call: ModelCall, streaming?: Listener): Promise<ChatAnswer> => {
    const signals = [call.abortSignal, streaming?.signal].filter(each => each !== undefined)
    const signal =
      signals.length === 0 ? options.signal : AbortSignal.any([...signals, options.signal])
    const { onDelta } = streaming ?? {}
    const answers = await options.respond(readCall(call), { signal, ...(onDelta && { onDelta }) })
    return answers[0]!
  }
  return {
    specificationVersion,
    provider: 'espalier',
    modelId,
    supportedUrls: {},
    doGenerate: async call => generated(await ask(call), wording, modelId),
    doStream: async call => ({ stream: openStream({ ask, call, wording, modelId }) }),
  }
}

function generated<Version extends ProviderVersion>(
  answer: ChatAnswer,
  wording: Wording<Version>,
  modelId: string,
): Generated<Version> {
  const { finish, usage } = wording(answer)
  return {
    content: contentOf(answer),
    finishReason: finish,
    usage,
    warnings: [],
    providerMetadata: metadataOf(answer),
    response: { id: answer.id, modelId },
  }
}

function metadataOf({ id, tokens }: ChatAnswer): AnswerMetadata {
  return { espalier: { answer: id, version: tokens.version } }
}

function contentOf({ message }: ChatAnswer): AnswerPart[] {
  const { reasoning_content: reasoning = '', content, tool_calls: calls = [] } = message
  const text = textOf(content)
  return [
    ...(reasoning === '' ? [] : [{ type: 'reasoning', text: reasoning } as const]),
    ...(text === '' ? [] : [{ type: 'text', text } as const]),
    ...calls.map(({ id, function: { name, arguments: input } }) => ({
      type: 'tool-call' as const,
      toolCallId: id,
      toolName: name,
      input,
    })),
  ]
}

/** Who hears an answer as it comes. */
interface Listener {
  readonly onDelta: (delta: ChatDelta) => void
  /** Aborts when nobody listens any more. */
  readonly signal: AbortSignal
}

interface Streaming<Version extends ProviderVersion> {
  readonly ask: (call: ModelCall, streaming: Listener) => Promise<ChatAnswer>
  readonly call: ModelCall
  readonly wording: Wording<Version>
  readonly modelId: string
}

/** An answer as a stream; a reader that cancels it aborts its request. */
function openStream<Version extends ProviderVersion>(
  streaming: Streaming<Version>,
): ReadableStream<StreamPart<Version>> {
  const left = new AbortController()
  const { signal } = left
  return new ReadableStream<StreamPart<Version>>({
    async start(controller) {
      const write = (part: StreamPart<Version>): void => {
        if (!signal.aborted) controller.enqueue(part)
      }
      await streamAnswer(write, signal, streaming)
      if (!signal.aborted) controller.close()
    },
    cancel: () => left.abort(new Error('the stream was cancelled')),
  })
}

/** Writes an answer as it comes; texts open with their first piece and close with the next kind. */
async function streamAnswer<Version extends ProviderVersion>(
  write: (part: StreamPart<Version>) => void,
  signal: AbortSignal,
  { ask, call, wording, modelId }: Streaming<Version>,
): Promise<void> {
  let open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined
  let count = 0
  const close = (): void => {
    if (open) write({ type: `${open.kind}-end`, id: open.id })
    open = undefined
  }
  const onDelta = (delta: ChatDelta): void => {
    if (delta.kind === 'call') {
      close()
      writeCall(write, delta)
      return
    }
    if (open?.kind !== delta.kind) {
      close()
      open = { kind: delta.kind, id: String(count++) }
      write({ type: `${open.kind}-start`, id: open.id })
    }
    write({ type: `${open.kind}-delta`, id: open.id, delta: delta.text })
  }
  write({ type: 'stream-start', warnings: [] })
  try {
    const answer = await ask(call, { onDelta, signal })
    close()
    const { finish, usage } = wording(answer)
    write({ type: 'response-metadata', id: answer.id, modelId })
    write({ type: 'finish', finishReason: finish, usage, providerMetadata: metadataOf(answer) })
  } catch (error) {
    write({ type: 'error', error })
  }
}

function writeCall(
  write: (part: StreamPart<ProviderVersion>) => void,
  { id, name, arguments: input }: Extract<ChatDelta, { kind: 'call' }>,
): void {
  write({ type: 'tool-input-start', id, toolName: name })
  write({ type: 'tool-input-delta', id, delta: input })
  write({ type: 'tool-input-end', id })
  write({ type: 'tool-call', toolCallId: id, toolName: name, input })
}
