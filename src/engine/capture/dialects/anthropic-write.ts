import { textOf } from '@espalier/text'
import type { ChatAnswer, ChatDelta, ChatFinish } from '../contract.ts'
import type { Asked, DialectProblem, StreamWriter, WriteOptions } from './dialect.ts'
import { namedEvent } from './events.ts'
import { type ProblemKind, type RequestProblem, statusOfProblem } from './problem.ts'
import { argumentsObject } from './tools.ts'
import { unmetField } from './unmet.ts'

const finishes: Readonly<Record<ChatFinish, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'tool-calls': 'tool_use',
  aborted: 'end_turn',
}

/** The body of a message. */
export function writeAnthropic(
  asked: Asked,
  answers: readonly ChatAnswer[],
  options: WriteOptions,
): unknown {
  const answer = answers[0]!
  return {
    ...messageHead(asked, options),
    content: blocksOf(answer),
    ...stopOf(asked, answer, options),
    ...unmetField(answer),
    usage: writeUsage(answer),
  }
}

/** Why it ended, and which stop text ended it, if one did. */
function stopOf(
  { chat: { stop = [] } }: Asked,
  { finish, tokens }: ChatAnswer,
  { decode }: WriteOptions,
): { readonly stop_reason: string; readonly stop_sequence: string | null } {
  const isByText = finish === 'stop' && stop.length > 0 && decode !== undefined
  const said = isByText ? [...tokens.sampled].map(decode).join('') : ''
  const sequence = isByText ? stop.find(text => said.includes(text)) : undefined
  if (sequence !== undefined) return { stop_reason: 'stop_sequence', stop_sequence: sequence }
  return { stop_reason: finishes[finish], stop_sequence: null }
}

function messageHead({ model }: Asked, { id }: WriteOptions): object {
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 0, output_tokens: 0 },
  }
}

/**
 * Stands where Anthropic signs reasoning. Nobody checks it here, but clients leave out of the next request what is not
 * signed, and the policy would be shown a conversation in which it had not thought.
 */
const signature = 'espalier'

function blocksOf({ message }: ChatAnswer): readonly object[] {
  const { content, reasoning_content: reasoning, tool_calls: calls = [] } = message
  const words = textOf(content)
  return [
    ...(reasoning === undefined ? [] : [{ type: 'thinking', thinking: reasoning, signature }]),
    ...(words === '' ? [] : [{ type: 'text', text: words }]),
    ...calls.map(({ id, function: { name, arguments: given } }) => ({
      type: 'tool_use',
      id,
      name,
      input: argumentsObject(given),
    })),
  ]
}

function writeUsage({ usage }: ChatAnswer): object {
  const cached = usage.cached ?? 0
  return {
    input_tokens: usage.prompt - cached,
    output_tokens: usage.sampled,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: 0,
  }
}

/** The events of a streamed message. */
export function streamAnthropic(asked: Asked, options: WriteOptions): StreamWriter {
  return new MessageStream(asked, options)
}

class MessageStream implements StreamWriter {
  readonly #asked: Asked
  readonly #options: WriteOptions
  #open: 'text' | 'reasoning' | undefined
  #index = 0

  constructor(asked: Asked, options: WriteOptions) {
    this.#asked = asked
    this.#options = options
  }

  begin(): string {
    return event('message_start', { message: messageHead(this.#asked, this.#options) })
  }

  delta(delta: ChatDelta): string {
    if (delta.kind === 'call') return this.#close() + this.#call(delta)
    if (delta.text === '') return ''
    const begun = this.#open === delta.kind ? '' : this.#close() + this.#begin(delta.kind)
    const { text } = delta
    return (
      begun +
      this.#piece(
        delta.kind === 'text'
          ? { type: 'text_delta', text }
          : { type: 'thinking_delta', thinking: text },
      )
    )
  }

  end(answers: readonly ChatAnswer[]): string {
    const answer = answers[0]!
    const delta = { ...stopOf(this.#asked, answer, this.#options), ...unmetField(answer) }
    return (
      this.#close() +
      event('message_delta', { delta, usage: writeUsage(answer) }) +
      event('message_stop', {})
    )
  }

  fail(problem: RequestProblem): string {
    return event('error', { error: anthropicError(problem) })
  }

  #piece(delta: object): string {
    return event('content_block_delta', { index: this.#index, delta })
  }

  #begin(kind: 'text' | 'reasoning'): string {
    this.#open = kind
    const block =
      kind === 'text'
        ? { type: 'text', text: '' }
        : { type: 'thinking', thinking: '', signature: '' }
    return event('content_block_start', { index: this.#index, content_block: block })
  }

  #close(): string {
    if (!this.#open) return ''
    const signed =
      this.#open === 'reasoning' ? this.#piece({ type: 'signature_delta', signature }) : ''
    this.#open = undefined
    return signed + event('content_block_stop', { index: this.#index++ })
  }

  #call({ id, name, arguments: given }: Extract<ChatDelta, { kind: 'call' }>): string {
    const block = { type: 'tool_use', id, name, input: {} }
    const begun = event('content_block_start', { index: this.#index, content_block: block })
    const json = JSON.stringify(argumentsObject(given))
    const said = this.#piece({ type: 'input_json_delta', partial_json: json })
    return begun + said + event('content_block_stop', { index: this.#index++ })
  }
}

function event(type: string, fields: object): string {
  return namedEvent(type, { type, ...fields })
}

const types: Readonly<Record<ProblemKind, string>> = {
  invalid: 'invalid_request_error',
  unsupported: 'invalid_request_error',
  context: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  'not-found': 'not_found_error',
  conflict: 'invalid_request_error',
  over: 'invalid_request_error',
  'too-large': 'request_too_large',
  'too-many': 'rate_limit_error',
  unavailable: 'overloaded_error',
  internal: 'api_error',
}

function anthropicError({ kind, message, field }: RequestProblem): object {
  // By this code a client that can also send whole conversations, as the tool runner does, goes on so.
  const details = field === 'thread' && { details: { error_code: 'thread_unsupported_request' } }
  return { type: types[kind], message, ...details }
}

/** A problem as Anthropic's API writes it; being overloaded has a status of its own there. */
export function anthropicProblem(problem: RequestProblem): DialectProblem {
  const status = problem.kind === 'unavailable' ? 529 : statusOfProblem(problem.kind)
  return { status, body: { type: 'error', error: anthropicError(problem) } }
}
