import { rawAttemptReader, type Sink, type StageReader, type Unit } from '../blocks.ts'
import { Markers, markers } from '../markers.ts'
import type { Reader, Source } from '../source.ts'
import { type Thinking, thinkingReader } from '../thinking.ts'

/** Outputs made of channels: thinking, an answer, calls. */
export interface Channels {
  readonly thinking: Thinking
  readonly answer: { readonly open: string; readonly close: string }
  readonly calls: { readonly open: string; readonly close: string }
  /** What closes the whole output. */
  readonly end?: string
  /** Whether another channel ends thinking that is not closed yet, even if that is closed later. */
  readonly interrupts?: boolean
  /** Beginnings of markers that are dropped if the output ends within one. */
  readonly cut?: readonly string[]
}

/**
 * Splits channels. Only what the answer's channel holds is content, together with the calls and
 * what follows them, which is passed on as it is. Text outside counts unless an answer follows it.
 */
export function channelReader(format: Channels): StageReader {
  const { thinking, answer, calls, end, interrupts } = format
  const opens = new Markers([thinking.open, answer.open, calls.open, ...(end ? [end] : [])])
  const answerEnd = markers(answer.close, calls.open)
  const others = [answer.open, calls.open]
  const think = thinkingReader({
    ...thinking,
    ...(interrupts ? { ends: others } : { calls: others }),
  })
  return function* (source, given) {
    const { sink, end: endText } = withoutCutMarker(given, format.cut ?? [])
    yield* readChannels(source, sink)
    endText()
  }

  function* readChannels(source: Source, sink: Sink): Reader<void> {
    if (thinking.inside) yield* readLeadingThoughts(source, sink, { think, opens })
    for (let answered = false; ; ) {
      const outside = source.collect()
      const marker = yield* source.until(opens)
      const text = outside.text()
      outside.close()
      const isLayout = text.trim() === '' && (answered || marker === thinking.open)
      if (marker !== answer.open && !isLayout) sink.content(text, source.position - text.length)
      if (marker === undefined) return
      if (marker === calls.open) return void (yield* source.until(nothing, sink.content))
      if (marker === thinking.open) yield* think(source, sink)
      else source.skip(marker.length)
      if (marker !== answer.open) continue
      answered = true
      if ((yield* source.until(answerEnd, sink.content)) === answer.close) {
        source.skip(answer.close.length)
      }
    }
  }
}

const nothing = markers()

/** A sink that holds back what may begin a marker, and drops it if the output ends there. */
function withoutCutMarker(sink: Sink, cut: readonly string[]): { sink: Sink; end(): void } {
  if (cut.length === 0) return { sink, end: () => {} }
  const reasoning = holdTail(sink.reasoning, cut)
  const content = holdTail(sink.content, cut)
  return {
    sink: {
      ...sink,
      reasoning(text) {
        if (text !== '') content.release()
        reasoning.take(text, 0)
      },
      content(text, start) {
        if (text !== '') reasoning.release()
        content.take(text, start)
      },
    },
    end() {
      for (const tail of [reasoning, content]) tail.end()
    },
  }
}

/** Passes text on, but holds back an end that may begin one of the texts in `cut`. */
function holdTail(emit: (text: string, start: number) => void, cut: readonly string[]) {
  const longest = Math.max(...cut.map(({ length }) => length))
  let held = ''
  let place = 0
  const release = (): void => {
    if (held !== '') emit(held, place)
    held = ''
  }
  return {
    take(text: string, start: number): void {
      const all = held + text
      let from = Math.max(0, all.length - longest)
      while (from < all.length && !cut.some(each => each.startsWith(all.slice(from)))) from++
      const first = held === '' ? start : place
      if (from > 0 || text === '') emit(all.slice(0, from), first)
      held = all.slice(from)
      place = first + from
    },
    release,
    end(): void {
      if (cut.includes(held)) held = ''
      release()
    },
  }
}

interface Leading {
  readonly think: StageReader
  readonly opens: Markers
}

/** An output that begins within thinking, unless it begins by opening something. */
function* readLeadingThoughts(source: Source, sink: Sink, options: Leading): Reader<void> {
  const { think, opens } = options
  const blank = source.collect()
  yield* source.spaces()
  for (const open of opens.strings) {
    if (yield* source.next(open)) return blank.close()
  }
  blank.giveBack()
  yield* think(source, sink)
}

/** Thinking that blocks of calls interrupt: they are passed on, the thoughts around them are kept. */
export function interruptedReader(thinking: Thinking, unit: Unit): StageReader {
  const outside = new Markers([thinking.open, ...unit.opens])
  const inside = new Markers([thinking.close, ...unit.opens])
  const pass = rawAttemptReader(unit)
  return function* (source, sink) {
    let thinks = thinking.inside
    for (;;) {
      if (thinks) sink.reasoning('')
      const marker = yield* source.until(
        thinks ? inside : outside,
        thinks ? sink.reasoning : sink.content,
      )
      if (marker === undefined) return
      if (marker === thinking.open || marker === thinking.close) {
        source.skip(marker.length)
        thinks = marker === thinking.open
      } else yield* pass(source, sink)
    }
  }
}
