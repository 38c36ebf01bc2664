import { closing, rawAttemptReader, type StageReader, type Unit } from '../blocks.ts'
import { broken, callFromObject } from '../call.ts'
import { scanJson } from '../json.ts'
import { markers } from '../markers.ts'

const begin = '<|message_model|>'
const thought = '<|content_thinking|>'
const text = '<|content_text|>'
const invoke = '<|content_invoke_tool_json|>'
const end = '<|end_message|>'

/** Framing around the text of an answer. */
export const inklingFraming = [`${begin}${text}`, text, end]

const nameEnd = markers(invoke, begin, end, thought, text)
const keys = { name: ['name'], arguments: ['args', 'arguments', 'parameters'] }

/** A call: `<|message_model|>NAME<|content_invoke_tool_json|>{"name": …, "args": …}<|end_message|>`. */
export const inklingUnit: Unit = {
  opens: [begin, invoke],
  closes: [end],
  *read(source) {
    const from = (yield* source.next(begin)) ? begin.length : 0
    const head = yield* source.spot(nameEnd, { from })
    if (head?.marker !== invoke) return { kind: 'text' }
    source.skip(from + head.text.length + invoke.length)
    const name = head.text.trim() === '' ? undefined : head.text.trim()
    yield* source.spaces()
    const json = yield* scanJson(source)
    if (json.kind === 'broken') return broken(json.problem, name)
    const unclosed = yield* closing(source, end)
    if (unclosed) return name === undefined ? unclosed : { ...unclosed, name }
    if (!json.text.startsWith('{')) return broken('the call is not a JSON object', name)
    const call = callFromObject(json, keys)
    return call.kind === 'broken' ? call : { kind: 'calls', calls: [call] }
  },
}

const outside = markers(`${begin}${thought}`, thought, begin, invoke, ...inklingFraming)
const inside = markers(thought, invoke, end)

/** Splits messages of thoughts off; calls are passed on as they are, and end a thought. */
export const inklingSplitter: StageReader = function* (source, sink) {
  const pass = rawAttemptReader(inklingUnit)
  for (;;) {
    const marker = yield* source.until(outside, sink.content)
    if (marker === undefined) return
    if (marker === begin || marker === invoke) yield* pass(source, sink)
    else source.skip(marker.length)
    if (!marker.endsWith(thought)) continue
    sink.reasoning('')
    let stop = yield* source.until(inside, sink.reasoning)
    for (; stop === thought; stop = yield* source.until(inside, sink.reasoning)) {
      source.skip(thought.length)
    }
    if (stop === end) source.skip(end.length)
  }
}
