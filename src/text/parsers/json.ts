import { type Reader, Source } from './source.ts'

/** A JSON value as it stands in the text, or why there is none. */
export type JsonScan =
  | { readonly kind: 'value'; readonly text: string }
  | { readonly kind: 'broken'; readonly problem: string }

/** How deep brackets may nest; Python's `json` gives up there as well. */
const MAXIMUM_DEPTH = 1000

/** A quote, a backslash, or a control character, which no JSON string may hold. */
const stringStop = /["\\]|[^ -\uffff]/g
const scalar = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)$/
const scalarEnd = /[^-+.0-9A-Za-z]/g
const escaped = /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/

/**
 * Reads one JSON value strictly, token by token. Strings are passed over as strings, so markers in
 * them are not seen; the first character that cannot be JSON ends the reading.
 */
export function* scanJson(source: Source): Reader<JsonScan> {
  const collector = source.collect()
  const problem = yield* scanValue(source)
  const text = collector.text()
  collector.close()
  return problem === undefined ? { kind: 'value', text } : { kind: 'broken', problem }
}

/** What may stand at the current place of a JSON text. */
type Expected = 'value' | 'first item' | 'first key' | 'key' | 'comma'

function* scanValue(source: Source): Reader<string | undefined> {
  const open: string[] = []
  let expected: Expected = 'value'
  do {
    if (open.length > 0) yield* source.spaces()
    const character = yield* source.ahead(1)
    if (character === '') return 'the JSON is cut off'
    if (closes(character, open.at(-1), expected)) {
      source.skip(1)
      open.pop()
      expected = 'comma'
    } else if (expected === 'comma') {
      if (character !== ',') return unexpected(character, 'a comma or a closing bracket')
      source.skip(1)
      expected = open.at(-1) === '}' ? 'key' : 'value'
    } else if (expected === 'key' || expected === 'first key') {
      if (character !== '"') return unexpected(character, 'a key')
      const problem = (yield* scanString(source)) ?? (yield* scanColon(source))
      if (problem !== undefined) return problem
      expected = 'value'
    } else if (character === '{' || character === '[') {
      if (open.length === MAXIMUM_DEPTH) return `the JSON nests deeper than ${MAXIMUM_DEPTH}`
      source.skip(1)
      open.push(character === '{' ? '}' : ']')
      expected = character === '{' ? 'first key' : 'first item'
    } else {
      const problem = character === '"' ? yield* scanString(source) : yield* scanScalar(source)
      if (problem !== undefined) return problem
      expected = 'comma'
    }
  } while (open.length > 0)
  return undefined
}

const closes = (character: string, bracket: string | undefined, expected: Expected): boolean =>
  character === bracket && expected !== 'value' && expected !== 'key'

const unexpected = (character: string, wanted: string): string =>
  `the JSON has ${JSON.stringify(character)} where ${wanted} belongs`

function* scanColon(source: Source): Reader<string | undefined> {
  yield* source.spaces()
  const character = yield* source.ahead(1)
  if (character === '') return 'the JSON is cut off'
  if (character !== ':') return unexpected(character, 'a colon')
  source.skip(1)
  return undefined
}

function* scanString(source: Source): Reader<string | undefined> {
  source.skip(1)
  for (;;) {
    const stop = source.skipTo(stringStop)
    if (stop === undefined) {
      if (!(yield* source.more())) return 'the JSON is cut off within a string'
    } else if (stop === '"') {
      source.skip(1)
      return undefined
    } else if (stop === '\\') {
      const two = yield* source.ahead(2)
      const sequence = escaped.exec(two[1] === 'u' ? yield* source.ahead(6) : two)
      if (!sequence) return `the JSON has the unknown escape ${JSON.stringify(two)}`
      source.skip(sequence[0].length)
    } else return 'the JSON has a raw control character within a string'
  }
}

function* scanScalar(source: Source): Reader<string | undefined> {
  const collector = source.collect()
  while (source.skipTo(scalarEnd) === undefined && (yield* source.more())) {}
  const text = collector.text()
  collector.close()
  if (scalar.test(text)) return undefined
  if (text === '') return unexpected(yield* source.ahead(1), 'a value')
  return `the JSON has ${JSON.stringify(text.slice(0, 40))}, which is no value`
}

/** The members of a valid JSON object, each value as it is written; of equal keys the last. */
export function jsonMembers(object: string): Map<string, string> {
  const members = new Map<string, string>()
  const source = wholeSource(object)
  source.skip(1)
  finish(readMembers(source, members))
  return members
}

/** The items of a valid JSON array, each as it is written. */
export function jsonItems(array: string): string[] {
  const items: string[] = []
  const source = wholeSource(array)
  source.skip(1)
  finish(readItems(source, items))
  return items
}

/** Whether the text is one JSON object and nothing else. */
export function isJsonObject(text: string): boolean {
  return text.startsWith('{') && isJson(text)
}

/** Whether the text is one JSON value and nothing else. */
export function isJson(text: string): boolean {
  const source = wholeSource(text)
  return finish(scanJson(source)).kind === 'value' && source.finished
}

function* readMembers(source: Source, members: Map<string, string>): Reader<void> {
  for (;;) {
    yield* source.spaces()
    if ((yield* source.ahead(1)) !== '"') return
    const key = yield* scanJson(source)
    yield* scanColon(source)
    yield* source.spaces()
    const value = yield* scanJson(source)
    if (key.kind === 'value' && value.kind === 'value') {
      members.set(JSON.parse(key.text) as string, value.text)
    }
    yield* source.spaces()
    source.skip(1)
  }
}

function* readItems(source: Source, items: string[]): Reader<void> {
  for (;;) {
    yield* source.spaces()
    if ((yield* source.ahead(1)) === ']') return
    const item = yield* scanJson(source)
    if (item.kind === 'value') items.push(item.text)
    yield* source.spaces()
    if (!(yield* source.take(','))) return
  }
}

function wholeSource(text: string): Source {
  const source = new Source()
  source.push(text, false)
  source.end()
  return source
}

function finish<Result>(reader: Reader<Result>): Result {
  const step = reader.next()
  if (!step.done) throw new Error('a whole text cannot be waited for')
  return step.value
}
