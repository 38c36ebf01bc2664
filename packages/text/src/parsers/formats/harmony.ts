import {
  attemptReader,
  closing,
  rawAttemptReader,
  type Sink,
  type StageReader,
  type Unit,
} from '../blocks.ts'
import { broken, callWithArguments } from '../call.ts'
import { scanJson } from '../json.ts'
import { markers } from '../markers.ts'
import type { ParsedCall } from '../parser.ts'
import type { Reader, Source } from '../source.ts'

const start = '<|start|>'
const channel = '<|channel|>'
const message = '<|message|>'
const end = '<|end|>'
const stop = '<|return|>'
const call = '<|call|>'

const structure = markers(start, channel, end, stop, call)
const headEnd = markers(message, start, end, stop, call)
const bodyEnd = markers(start, channel, end, stop)
const thoughtEnd = markers(start, end, stop, call)

/** The header of a message: who it is for, and on which channel. */
interface Header {
  readonly text: string
  readonly recipient: string | undefined
  readonly isThought: boolean
}

/** The messages of gpt-oss, each with a header that tells its channel and recipient. */
export interface Harmony {
  /** Whether calls are read, or passed on as they are. */
  readonly calls: 'read' | 'raw'
  /**
   * Whether text without any structure is kept. The prompt ends within a header, so such text is
   * the rest of a header that never ended.
   */
  readonly bare: 'keep' | 'drop'
}

/** Reads channels: `analysis` is reasoning, a recipient makes a call, everything else is content. */
export function harmonyReader({ calls, bare }: Harmony): StageReader {
  const attempts = calls === 'read' ? attemptReader(harmonyUnit) : rawAttemptReader(harmonyUnit)
  return function* (source, out) {
    const blanks = new Blanks(out)
    const sink: Sink = { ...out, content: (text, start) => blanks.content(text, start) }
    for (let first = true; ; first = false) {
      const free = source.collect()
      const marker = yield* source.until(structure)
      const text = free.text()
      free.close()
      const isBare = first && marker === undefined && bare === 'drop'
      if (!isBare) blanks.between(text, source.position - text.length)
      if (marker === undefined) return blanks.release()
      const header = yield* peekHeader(source, marker)
      if (header?.recipient !== undefined) {
        blanks.drop()
        yield* attempts(source, sink)
      } else if (header) yield* readMessage(source, sink, header)
      else {
        if (marker === start || marker === channel) sink.content(marker, source.position)
        source.skip(marker.length)
      }
    }
  }
}

/**
 * Blanks between messages: layout in an output with calls, part of the text in one without. Content
 * behind them waits until that is known; models write none, so hardly anything ever waits.
 */
class Blanks {
  readonly #sink: Sink
  readonly #held: { readonly text: string; readonly start: number; readonly blank: boolean }[] = []
  #dropped = false

  constructor(sink: Sink) {
    this.#sink = sink
  }

  between(text: string, start: number): void {
    if (text === '' || text.trim() !== '') this.content(text, start)
    else if (!this.#dropped) this.#held.push({ text, start, blank: true })
  }

  content(text: string, start: number): void {
    if (this.#held.length > 0) this.#held.push({ text, start, blank: false })
    else this.#sink.content(text, start)
  }

  drop(): void {
    for (const { text, start, blank } of this.#held.splice(0)) {
      if (!blank) this.#sink.content(text, start)
    }
    this.#dropped = true
  }

  release(): void {
    for (const { text, start } of this.#held.splice(0)) this.#sink.content(text, start)
  }
}

function* peekHeader(source: Source, marker: string): Reader<Header | undefined> {
  if (marker !== start && marker !== channel) return undefined
  const from = marker.length
  const found = yield* source.spot(headEnd, { limit: 512, from })
  const text = marker + (found?.text ?? (yield* source.ahead(from + 512)).slice(from))
  const recipient = /\bto=([^\s<]+)/.exec(text)?.[1]
  if (found?.marker !== message && recipient === undefined) return undefined
  return { text, recipient, isThought: text.includes(`${channel}analysis`) }
}

function* readMessage(source: Source, sink: Sink, header: Header): Reader<void> {
  source.skip(header.text.length + message.length)
  if (header.isThought) {
    sink.reasoning('')
    const marker = yield* source.until(thoughtEnd, sink.reasoning)
    if (marker !== undefined && marker !== start) source.skip(marker.length)
    return
  }
  for (;;) {
    const marker = yield* source.until(bodyEnd, sink.content)
    if (marker !== end) {
      if (marker === stop) source.skip(stop.length)
      return
    }
    const isEnd = yield* endsMessage(source)
    if (!isEnd) sink.content(end, source.position)
    source.skip(end.length)
    if (isEnd) return
  }
}

/** An end marker within an answer is text, unless a message or nothing follows. */
function* endsMessage(source: Source): Reader<boolean> {
  const ahead = (yield* source.ahead(end.length + 80)).slice(end.length).trimStart()
  return ahead === '' || ahead.startsWith(start) || ahead.startsWith(channel)
}

const harmonyUnit: Unit = {
  opens: [start, channel],
  closes: [call],
  weak: [channel],
  *read(source) {
    const first = (yield* source.next(start)) ? start : channel
    const header = yield* peekHeader(source, first)
    if (header?.recipient === undefined) return { kind: 'text' }
    const name = header.recipient.replace(/^functions\./, '')
    source.skip(header.text.length)
    if (!(yield* source.take(message))) return broken('the header of the call does not end')
    yield* source.spaces()
    const empty = yield* source.next(call)
    const json = empty ? undefined : yield* scanJson(source)
    if (json?.kind === 'broken') return broken(json.problem, name)
    const unclosed = yield* closing(source, call)
    if (unclosed) return { ...unclosed, name }
    const parsed = callWithArguments(name, json?.text)
    return parsed.kind === 'broken' ? parsed : { kind: 'calls', calls: [parsed as ParsedCall] }
  },
}
