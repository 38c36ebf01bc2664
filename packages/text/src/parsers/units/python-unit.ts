import type { ToolDefinition } from '../../message.ts'
import { closing, type Unit, type UnitResult } from '../blocks.ts'
import { type Broken, broken, callFromObject, callWithValues, commonKeys } from '../call.ts'
import { scanJson } from '../json.ts'
import type { ParsedCall } from '../parser.ts'
import type { Reader, Source } from '../source.ts'
import { fromPython } from '../values.ts'

/** Calls written as a Python list: `[NAME(key=value, …), …]`, or as a JSON list of objects. */
export interface PythonUnit {
  /** Markers around the list. Without them a bracket in plain text may open one. */
  readonly wrap?: { readonly open: string; readonly close: string }
}

/** How a list of calls begins in plain text: a bracket before a name. */
const lists = [...' \n_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'].map(
  next => `[${next}`,
)

/** Python calls. Without markers, a broken one counts as a call only if it names an offered tool. */
export function pythonUnit({ wrap }: PythonUnit, schemas: readonly ToolDefinition[]): Unit {
  const offered = new Set(schemas.map(schema => schema.function.name))
  return {
    opens: wrap ? [wrap.open] : lists,
    closes: [wrap?.close ?? ')]'],
    weak: lists,
    *read(source) {
      if (wrap) {
        source.skip(wrap.open.length)
        yield* source.spaces()
      }
      const calls = yield* readList(source, wrap !== undefined)
      if (Array.isArray(calls)) {
        const unclosed = wrap && (yield* closing(source, wrap.close))
        return unclosed ?? { kind: 'calls', calls }
      }
      const meant = wrap || (calls.name !== undefined && offered.has(calls.name))
      return meant ? calls : ({ kind: 'text' } satisfies UnitResult)
    },
  }
}

function* readList(source: Source, objects: boolean): Reader<ParsedCall[] | Broken> {
  if (!(yield* source.take('['))) return broken('the calls are not a list')
  const calls: ParsedCall[] = []
  for (;;) {
    yield* source.spaces()
    if (calls.length > 0 && (yield* source.take(']'))) return calls
    const call =
      objects && (yield* source.next('{')) ? yield* readObject(source) : yield* readCall(source)
    if (call.kind === 'broken') return call
    calls.push(call)
    yield* source.spaces()
    if (yield* source.take(']')) return calls
    if (!(yield* source.take(',')))
      return broken('the list of calls does not end with ]', call.name)
  }
}

function* readObject(source: Source): Reader<ParsedCall | Broken> {
  const json = yield* scanJson(source)
  return json.kind === 'broken' ? broken(json.problem) : callFromObject(json, commonKeys)
}

const toolName = /[A-Za-z_][\w.-]{0,127}/y
const argumentName = /[\p{L}_][\p{L}\p{N}_-]{0,127}/uy

function* readCall(source: Source): Reader<ParsedCall | Broken> {
  const name = yield* source.match(toolName)
  if (name === '') return broken('there is no name of a tool')
  if (!(yield* source.take('('))) return broken(`${name} is not called`)
  const values = new Map<string, string>()
  for (;;) {
    yield* source.spaces()
    if (yield* source.take(')')) return callWithValues(name, values)
    const key = yield* source.match(argumentName)
    yield* source.spaces()
    if (key === '' || !(yield* source.take('='))) {
      return broken(source.finished ? 'the call is cut off' : 'an argument has no name', name)
    }
    yield* source.spaces()
    const literal = yield* scanLiteral(source)
    const value = literal === undefined ? undefined : fromPython(literal)
    if (value === undefined) {
      return broken(`the value of ${key} is ${source.finished ? 'cut off' : 'no literal'}`, name)
    }
    values.set(key, value)
    yield* source.spaces()
    if (yield* source.take(',')) continue
    if (!(yield* source.next(')'))) {
      return broken(source.finished ? 'the call is cut off' : 'the call does not end with )', name)
    }
  }
}

/** JSON's words for Python's, which models mix. */
const words: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' }
const wordEnd = /[^\w.+-]/g
const quotes = /^(?:[rRbBuU]{0,2})('''|"""|'|")/

/**
 * The text of one Python literal. Strings and brackets are followed, so that whatever is in them is
 * passed over; whether it is a valid literal is checked later.
 */
function* scanLiteral(source: Source): Reader<string | undefined> {
  const parts: string[] = []
  let depth = 0
  for (;;) {
    const ahead = yield* source.ahead(5)
    const character = ahead[0] ?? ''
    const quote = quotes.exec(ahead)
    if (character === '') return undefined
    if (quote) {
      const string = yield* scanString(source, quote[0], quote[1]!)
      if (string === undefined) return undefined
      parts.push(string)
    } else if ('([{'.includes(character)) {
      depth++
      parts.push(character)
      source.skip(1)
    } else if (depth > 0 && ')]},: \t\r\n'.includes(character)) {
      if (')]}'.includes(character)) depth--
      parts.push(character)
      source.skip(1)
    } else {
      const collector = source.collect()
      while (source.skipTo(wordEnd) === undefined && (yield* source.more())) {}
      const word = collector.text()
      collector.close()
      if (word === '') return undefined
      parts.push(words[word] ?? word)
    }
    if (depth === 0) return parts.join('')
  }
}

function* scanString(source: Source, open: string, quote: string): Reader<string | undefined> {
  const collector = source.collect()
  source.skip(open.length)
  const stop = quote.startsWith('"') ? /["\\]/g : /['\\]/g
  for (;;) {
    const found = source.skipTo(stop)
    if (found === undefined) {
      if (!(yield* source.more())) return undefined
    } else if (found === '\\') {
      if ((yield* source.ahead(2)).length < 2) return undefined
      source.skip(2)
    } else if (yield* source.take(quote)) {
      const text = collector.text()
      collector.close()
      return text
    } else source.skip(1)
  }
}
