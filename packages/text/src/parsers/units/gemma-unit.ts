import { closing, type Unit } from '../blocks.ts'
import { broken, isName } from '../call.ts'
import { isJson } from '../json.ts'
import { markers } from '../markers.ts'
import type { Reader, Source } from '../source.ts'

const open = '<|tool_call>'
const close = '<tool_call|>'
const quote = '<|"|>'
const quoteEnd = markers(quote)
const braceOpen = markers('{')
const keyEnd = markers(':', quote)
const wordEnd = /[,}\]]/g

/** How deep values may nest. */
const MAXIMUM_DEPTH = 100

/** Gemma's own notation: `<|tool_call>call:NAME{key:<|"|>text<|"|>,n:3}<tool_call|>`. */
export const gemmaUnit: Unit = {
  opens: [open],
  closes: [close],
  *read(source) {
    source.skip(open.length)
    yield* source.spaces()
    if (!(yield* source.take('call:'))) return broken('the call does not begin with call:')
    const head = yield* source.near(braceOpen)
    if (!head) return broken('the name of the tool is not followed by {')
    const name = head.text.trim()
    if (!isName(name)) return broken(`${JSON.stringify(name.slice(0, 80))} is not a name`)
    const result = yield* readValue(source, 0)
    if (result.kind === 'broken') return broken(result.problem, name)
    const unclosed = yield* closing(source, close)
    if (unclosed) return { ...unclosed, name }
    return { kind: 'calls', calls: [{ kind: 'call', name, arguments: result.text }] }
  },
}

type Value = { kind: 'value'; text: string } | { kind: 'broken'; problem: string }

const cut: Value = { kind: 'broken', problem: 'the call is cut off' }

/** Reads a value and gives it as JSON. */
function* readValue(source: Source, depth: number): Reader<Value> {
  yield* source.spaces()
  if (depth > MAXIMUM_DEPTH) {
    return { kind: 'broken', problem: `the arguments nest deeper than ${MAXIMUM_DEPTH}` }
  }
  if (yield* source.next(quote)) return yield* readString(source)
  if (yield* source.take('{')) return yield* readItems(source, depth, '}')
  if (yield* source.take('[')) return yield* readItems(source, depth, ']')
  return yield* readWord(source)
}

function* readItems(source: Source, depth: number, end: '}' | ']'): Reader<Value> {
  const items: string[] = []
  const text = () => (end === '}' ? `{${items.join(', ')}}` : `[${items.join(', ')}]`)
  yield* source.spaces()
  if (yield* source.take(end)) return { kind: 'value', text: text() }
  for (;;) {
    const key = end === '}' ? yield* readKey(source) : { kind: 'value' as const, text: '' }
    if (key.kind === 'broken') return key
    const value = yield* readValue(source, depth + 1)
    if (value.kind === 'broken') return value
    items.push(key.text + value.text)
    yield* source.spaces()
    if (yield* source.take(end)) return { kind: 'value', text: text() }
    if (!(yield* source.take(','))) {
      return source.finished
        ? cut
        : { kind: 'broken', problem: `there is neither a comma nor ${end} after a value` }
    }
    yield* source.spaces()
  }
}

function* readKey(source: Source): Reader<Value> {
  const quoted = yield* source.next(quote)
  if (quoted) {
    const key = yield* readString(source)
    yield* source.spaces()
    if (key.kind === 'broken') return key
    return (yield* source.take(':')) ? { kind: 'value', text: `${key.text}: ` } : cut
  }
  const found = yield* source.near(keyEnd)
  const name = found?.text.trim() ?? ''
  if (found?.marker !== ':' || name === '' || /[{}[\],=<>]/.test(name)) {
    return { kind: 'broken', problem: 'a key is not followed by a colon' }
  }
  source.skip(1)
  return { kind: 'value', text: `${JSON.stringify(name)}: ` }
}

function* readString(source: Source): Reader<Value> {
  source.skip(quote.length)
  const collector = source.collect()
  if ((yield* source.until(quoteEnd)) === undefined) return cut
  const text = collector.text()
  collector.close()
  source.skip(quote.length)
  return { kind: 'value', text: JSON.stringify(text) }
}

function* readWord(source: Source): Reader<Value> {
  const collector = source.collect()
  while (source.skipTo(wordEnd) === undefined && (yield* source.more())) {}
  const text = collector.text().trim()
  collector.close()
  if (source.finished) return cut
  if (text === '') return { kind: 'broken', problem: 'a value is missing' }
  const plain = isJson(text) && !text.startsWith('"')
  return { kind: 'value', text: plain ? text : JSON.stringify(text) }
}
