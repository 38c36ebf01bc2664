import type { Sink } from './blocks.ts'
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
export function* readThinking(source: Source, sink: Sink, thinking: Thinking): Reader<void> {
  const { open, close, calls = [], ends = [] } = thinking
  while (yield* source.take(open)) {}
  sink.reasoning('')
  const marker = yield* source.until(new Markers([close, ...calls, ...ends]), sink.reasoning)
  if (marker === undefined || ends.includes(marker)) return
  if (marker === close) {
    source.skip(close.length)
    return
  }
  // Only if the block is never closed did the call end it.
  const held = source.collect()
  if ((yield* source.until(markers(close))) !== undefined) {
    sink.reasoning(held.text())
    held.close()
    source.skip(close.length)
  } else if (!held.giveBack()) sink.reasoning(held.text())
}
