import type { Sink, StageReader } from './blocks.ts'
import { Markers, markers } from './markers.ts'
import type { Reader, Source } from './source.ts'

/** Thinking between two tags. */
export interface Thinking {
  readonly open: string
  readonly close: string
  /** Whether the output begins within a block. */
  readonly inside: boolean
  /** Markers of calls that end a block which nothing else closes. */
  readonly calls?: readonly string[]
  /** Markers that end a block wherever they stand. */
  readonly ends?: readonly string[]
  /** Whether a closing tag at the very beginning is dropped. */
  readonly strayClose?: boolean
}

/** Reads a thinking block, opening tags included, up to and with its closing tag. */
export function thinkingReader(thinking: Thinking): StageReader {
  const { open, close, calls = [], ends = [] } = thinking
  const stops = new Markers([close, ...calls, ...ends])
  const reading: ThinkingReading = { open, close, ends, stops, closes: markers(close) }
  return (source, sink) => readThinking(source, sink, reading)
}

interface ThinkingReading {
  readonly open: string
  readonly close: string
  readonly ends: readonly string[]
  readonly stops: Markers
  readonly closes: Markers
}

function* readThinking(source: Source, sink: Sink, reading: ThinkingReading): Reader<void> {
  const { open, close, ends, stops, closes } = reading
  while (yield* source.take(open)) {}
  sink.reasoning('')
  const marker = yield* source.until(stops, sink.reasoning)
  if (marker === undefined || ends.includes(marker)) return
  if (marker !== close) {
    // The call ends the block only if the block is never closed.
    const held = source.collect()
    const isClosed = (yield* source.until(closes)) !== undefined
    const text = held.text()
    if (!isClosed && held.giveBack()) return
    held.close()
    sink.reasoning(text)
    if (!isClosed) return
  }
  source.skip(close.length)
}
