import type { ChatAnswer, ChatDelta } from '../../contract.ts'
import type { Asked, StreamWriter, WriteOptions } from '../dialect.ts'
import { namedEvent } from '../events.ts'
import type { RequestProblem } from '../problem.ts'
import { openAiError } from './openai-problem.ts'
import {
  callItem,
  finishedResponse,
  logprobsOf,
  messageItem,
  reasoningItem,
  responseHead,
  textPart,
} from './openai-responses-write.ts'
import type { ResponseItem } from './response-memory.ts'

/** An item while its pieces come. */
interface OpenItem {
  readonly kind: 'text' | 'reasoning'
  readonly id: string
  text: string
}

/** The events of a streamed response. */
export function streamOpenAiResponse(asked: Asked, options: WriteOptions): StreamWriter {
  return new ResponseStream(asked, options)
}

class ResponseStream implements StreamWriter {
  readonly #asked: Asked
  readonly #options: WriteOptions
  readonly #output: ResponseItem[] = []
  #open: OpenItem | undefined
  #sequence = 0

  constructor(asked: Asked, options: WriteOptions) {
    this.#asked = asked
    this.#options = options
  }

  begin(): string {
    const response = responseHead(this.#asked, this.#options)
    return (
      this.#event('response.created', { response }) +
      this.#event('response.in_progress', { response })
    )
  }

  delta(delta: ChatDelta): string {
    if (delta.kind === 'call') return this.#close() + this.#call(delta)
    const change = this.#open?.kind === delta.kind ? '' : this.#close() + this.#begin(delta.kind)
    const open = this.#open!
    open.text += delta.text
    const place = { item_id: open.id, output_index: this.#output.length }
    return (
      change +
      (delta.kind === 'text'
        ? this.#event('response.output_text.delta', {
            ...place,
            content_index: 0,
            delta: delta.text,
            logprobs: [],
          })
        : this.#event('response.reasoning_summary_text.delta', {
            ...place,
            summary_index: 0,
            delta: delta.text,
          }))
    )
  }

  end(answers: readonly ChatAnswer[]): string {
    const answer = answers[0]!
    const isEmpty = this.#output.length === 0 && !this.#open
    const begun = isEmpty ? this.#begin('text') : ''
    const logprobs = this.#asked.wants.logprobs ? logprobsOf(answer, this.#options) : []
    const closed = this.#close(logprobs)
    const response = finishedResponse(this.#asked, answer, {
      ...this.#options,
      output: this.#output,
    })
    const isCut = answer.finish === 'length'
    return (
      begun +
      closed +
      this.#event(isCut ? 'response.incomplete' : 'response.completed', { response })
    )
  }

  fail(problem: RequestProblem): string {
    const { message, type, code } = openAiError(problem)
    const error = { code: code ?? type, message }
    const response = { ...responseHead(this.#asked, this.#options), status: 'failed', error }
    return this.#event('response.failed', { response })
  }

  #event(type: string, fields: object): string {
    return namedEvent(type, { type, sequence_number: this.#sequence++, ...fields })
  }

  #id(prefix: string): string {
    return `${prefix}_${this.#options.id}_${this.#output.length}`
  }

  #begin(kind: OpenItem['kind']): string {
    const id = this.#id(kind === 'text' ? 'msg' : 'rs')
    this.#open = { kind, id, text: '' }
    const place = { item_id: id, output_index: this.#output.length }
    const output_index = this.#output.length
    if (kind === 'text') {
      const item = { ...messageItem(id, ''), status: 'in_progress', content: [] }
      return (
        this.#event('response.output_item.added', { output_index, item }) +
        this.#event('response.content_part.added', {
          ...place,
          content_index: 0,
          part: textPart(''),
        })
      )
    }
    const part = { type: 'summary_text', text: '' }
    return (
      this.#event('response.output_item.added', { output_index, item: reasoningItem(id, '') }) +
      this.#event('response.reasoning_summary_part.added', { ...place, summary_index: 0, part })
    )
  }

  /** Ends the item that is open, if one is. */
  #close(logprobs: readonly unknown[] = []): string {
    const open = this.#open
    if (!open) return ''
    const { kind, id, text } = open
    this.#open = undefined
    const place = { item_id: id, output_index: this.#output.length }
    if (kind === 'text') {
      const at = { ...place, content_index: 0 }
      return (
        this.#event('response.output_text.done', { ...at, text, logprobs }) +
        this.#event('response.content_part.done', { ...at, part: textPart(text, logprobs) }) +
        this.#done(messageItem(id, text, logprobs))
      )
    }
    const at = { ...place, summary_index: 0 }
    const part = { type: 'summary_text', text }
    return (
      this.#event('response.reasoning_summary_text.done', { ...at, text }) +
      this.#event('response.reasoning_summary_part.done', { ...at, part }) +
      this.#done(reasoningItem(id, text))
    )
  }

  #done(item: ResponseItem): string {
    const output_index = this.#output.length
    this.#output.push(item)
    return this.#event('response.output_item.done', { output_index, item })
  }

  #call(delta: Extract<ChatDelta, { kind: 'call' }>): string {
    const item = callItem(this.#id('fc'), delta)
    const output_index = this.#output.length
    const place = { item_id: item.id, output_index }
    const begun = { ...item, arguments: '', status: 'in_progress' }
    return (
      this.#event('response.output_item.added', { output_index, item: begun }) +
      this.#event('response.function_call_arguments.delta', { ...place, delta: delta.arguments }) +
      this.#event('response.function_call_arguments.done', {
        ...place,
        name: delta.name,
        arguments: delta.arguments,
      }) +
      this.#done(item)
    )
  }
}
