import { compare, typeName } from './compare.ts'
import { PythonError } from './error.ts'
import { encodeAscii, encodeText, encodeUsualKey, PAIR } from './json-text.ts'
import { formatFloat } from './repr.ts'
import type { PythonDict, PythonKey, PythonValue } from './value.ts'
import { formatInt, MAXIMUM_DEPTH, PythonFloat, PythonText, PythonTuple, readInt } from './value.ts'

/** Text that is not JSON; `offset` counts UTF-16 units, line and column count from one. */
export class JsonError extends PythonError {
  readonly offset: number
  readonly line: number
  readonly column: number
  constructor(problem: string, text: string, offset: number) {
    const before = text.slice(0, offset)
    const line = before.split('\n').length
    const column = [...before.slice(before.lastIndexOf('\n') + 1)].length + 1
    super(
      'JSONDecodeError',
      `${problem}: line ${line} column ${column} (char ${[...before].length})`,
    )
    this.offset = offset
    this.line = line
    this.column = column
  }
}

/**
 * Python's `json.loads`: ints and floats stay apart, long ints keep every digit, `NaN` and
 * `Infinity` are read, the last of equal keys wins.
 */
export function parseJson(text: string): PythonValue {
  const reader: JsonReader = { text, offset: 0, depth: 0 }
  skipSpace(reader)
  const value = readValue(reader)
  skipSpace(reader)
  if (reader.offset < text.length) throw new JsonError('Extra data', text, reader.offset)
  return value
}

interface JsonReader {
  readonly text: string
  offset: number
  depth: number
}

function skipSpace(reader: JsonReader): void {
  const { text } = reader
  let offset = reader.offset
  for (; ; offset++) {
    const unit = text.charCodeAt(offset)
    if (unit !== 32 && unit !== 10 && unit !== 13 && unit !== 9) break
  }
  reader.offset = offset
}

const WORDS: readonly (readonly [string, PythonValue])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
  ['NaN', new PythonFloat(Number.NaN)],
  ['Infinity', new PythonFloat(Number.POSITIVE_INFINITY)],
  ['-Infinity', new PythonFloat(Number.NEGATIVE_INFINITY)],
]

function readValue(reader: JsonReader): PythonValue {
  const { text, offset } = reader
  switch (text.charCodeAt(offset)) {
    case 34:
      return readString(reader)
    case 123:
      return nest(reader, readDict)
    case 91:
      return nest(reader, readList)
    default:
      return readNumber(reader) ?? readWord(reader)
  }
}

function nest<T>(reader: JsonReader, read: (reader: JsonReader) => T): T {
  if (++reader.depth > MAXIMUM_DEPTH) {
    throw new JsonError(`Nested deeper than ${MAXIMUM_DEPTH} levels`, reader.text, reader.offset)
  }
  reader.offset++
  const value = read(reader)
  reader.depth--
  return value
}

function readWord(reader: JsonReader): PythonValue {
  for (const [word, value] of WORDS) {
    if (reader.text.startsWith(word, reader.offset)) {
      reader.offset += word.length
      return value
    }
  }
  throw new JsonError('Expecting value', reader.text, reader.offset)
}

const NUMBER = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?/y

function readNumber(reader: JsonReader): PythonValue | undefined {
  NUMBER.lastIndex = reader.offset
  const match = NUMBER.exec(reader.text)
  if (!match) return undefined
  reader.offset = NUMBER.lastIndex
  if (match[2] !== undefined || match[3] !== undefined) return new PythonFloat(Number(match[0]))
  return readInt(match[0])
}

function readList(reader: JsonReader): PythonValue[] {
  const items: PythonValue[] = []
  skipSpace(reader)
  if (reader.text.charCodeAt(reader.offset) === 93) {
    reader.offset++
    return items
  }
  while (true) {
    items.push(readValue(reader))
    skipSpace(reader)
    const unit = reader.text.charCodeAt(reader.offset)
    if (unit === 93) break
    if (unit !== 44) throw new JsonError("Expecting ',' delimiter", reader.text, reader.offset)
    reader.offset++
    skipSpace(reader)
  }
  reader.offset++
  return items
}

function readDict(reader: JsonReader): PythonDict {
  const dict: PythonDict = new Map()
  skipSpace(reader)
  if (reader.text.charCodeAt(reader.offset) === 125) {
    reader.offset++
    return dict
  }
  while (true) {
    readPair(reader, dict)
    const unit = reader.text.charCodeAt(reader.offset)
    if (unit === 125) break
    if (unit !== 44) throw new JsonError("Expecting ',' delimiter", reader.text, reader.offset)
    reader.offset++
    skipSpace(reader)
  }
  reader.offset++
  return dict
}

function readPair(reader: JsonReader, dict: PythonDict): void {
  const { text } = reader
  if (text.charCodeAt(reader.offset) !== 34) {
    throw new JsonError('Expecting property name enclosed in double quotes', text, reader.offset)
  }
  const key = readString(reader)
  skipSpace(reader)
  if (text.charCodeAt(reader.offset) !== 58) {
    throw new JsonError("Expecting ':' delimiter", text, reader.offset)
  }
  reader.offset++
  skipSpace(reader)
  dict.set(key, readValue(reader))
  skipSpace(reader)
}

// everything but the quote, the backslash and control characters, which Python refuses too
const PLAIN = /[ !#-[\]-\uffff]*/y
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

function readString(reader: JsonReader): string {
  const { text, offset: start } = reader
  let offset = start + 1
  let value = ''
  while (true) {
    PLAIN.lastIndex = offset
    PLAIN.test(text)
    value += text.slice(offset, PLAIN.lastIndex)
    offset = PLAIN.lastIndex
    const character = text[offset]
    if (character === '"') break
    if (character === undefined) throw new JsonError('Unterminated string starting at', text, start)
    if (character !== '\\') throw new JsonError('Invalid control character at', text, offset)
    const resolved = readEscape(text, offset, start)
    value += resolved.value
    offset = resolved.end
  }
  reader.offset = offset + 1
  return value
}

const FOUR_DIGITS = /^[0-9a-fA-F]{4}$/

function readEscape(text: string, offset: number, start: number): { value: string; end: number } {
  const letter = text[offset + 1]
  if (letter === undefined) throw new JsonError('Unterminated string starting at', text, start)
  const short = ESCAPES[letter]
  if (short !== undefined) return { value: short, end: offset + 2 }
  if (letter !== 'u') throw new JsonError('Invalid \\escape', text, offset)
  const digits = text.slice(offset + 2, offset + 6)
  if (!FOUR_DIGITS.test(digits)) throw new JsonError('Invalid \\uXXXX escape', text, offset + 1)
  return { value: String.fromCharCode(Number.parseInt(digits, 16)), end: offset + 6 }
}

/** The options of Python's `json.dumps`, under their JavaScript names. */
export interface DumpOptions {
  /** @default true */
  readonly ensureAscii?: boolean
  /** A count of spaces, or the text of one level. Without it all is on one line. */
  readonly indent?: number | string | null
  /** Between items, and between key and value. @default [', ', ': '], with indent [',', ': '] */
  readonly separators?: readonly [string, string] | null
  /** @default false */
  readonly sortKeys?: boolean
  /** Characters after which writing stops with an error. @default none */
  readonly maximum?: number
}

interface Writer {
  text: string
  readonly encode: (text: string) => string
  /** The key of a member, and what stands between it and its value. */
  readonly encodeKey: (text: string) => string
  readonly indent: string | undefined
  readonly item: string
  readonly sortKeys: boolean
  readonly maximum: number
}

/** Python's `json.dumps`, to the byte. */
export function dumps(value: PythonValue, options: DumpOptions = {}): string {
  const { indent = null, separators = null, ensureAscii = true, sortKeys = false } = options
  const encode = ensureAscii ? encodeAscii : encodeText
  const pair = separators?.[1] ?? PAIR
  const isUsual = !ensureAscii && pair === PAIR
  const writer: Writer = {
    text: '',
    encode,
    encodeKey: isUsual ? encodeUsualKey : key => encode(key) + pair,
    indent: typeof indent === 'number' ? ' '.repeat(Math.max(0, indent)) : (indent ?? undefined),
    item: separators?.[0] ?? (indent === null ? ', ' : ','),
    sortKeys,
    maximum: options.maximum ?? Number.POSITIVE_INFINITY,
  }
  write(writer, value, 0)
  return writer.text
}

function write(writer: Writer, value: PythonValue, depth: number): void {
  if (writer.text.length > writer.maximum) throw tooLong(writer)
  switch (typeof value) {
    case 'string':
      writer.text += writer.encode(value)
      return
    case 'boolean':
      writer.text += value ? 'true' : 'false'
      return
    case 'number':
    case 'bigint':
      writer.text += encodeNumber(value)
      return
    default:
      if (value === null) writer.text += 'null'
      else writeCompound(writer, value, depth)
  }
}

function writeCompound(writer: Writer, value: Exclude<PythonValue, null>, depth: number): void {
  if (depth > MAXIMUM_DEPTH) {
    throw new PythonError('RecursionError', 'maximum recursion depth exceeded while encoding JSON')
  }
  if (value instanceof Map) writeDict(writer, value, depth)
  else if (Array.isArray(value)) writeList(writer, value, depth)
  else if (value instanceof PythonFloat) writer.text += encodeFloat(value.value)
  else if (value instanceof PythonTuple) writeList(writer, value.items, depth)
  else if (value instanceof PythonText) writer.text += writer.encode(value.text)
  else {
    const type = typeName(value)
    throw new PythonError('TypeError', `Object of type ${type} is not JSON serializable`)
  }
}

function lineBreak(writer: Writer, depth: number): string {
  if (writer.indent === undefined) return ''
  if (writer.indent.length * depth > writer.maximum) throw tooLong(writer)
  return `\n${writer.indent.repeat(depth)}`
}

const tooLong = (writer: Writer): PythonError =>
  new PythonError('LimitError', `The JSON is longer than ${writer.maximum} characters.`)

function writeList(writer: Writer, items: readonly PythonValue[], depth: number): void {
  if (items.length === 0) {
    writer.text += '[]'
    return
  }
  const inner = lineBreak(writer, depth + 1)
  const between = writer.item + inner
  writer.text += `[${inner}`
  for (let index = 0; index < items.length; index++) {
    if (index > 0) writer.text += between
    write(writer, items[index] as PythonValue, depth + 1)
  }
  writer.text += `${lineBreak(writer, depth)}]`
}

function writeDict(writer: Writer, dict: PythonDict, depth: number): void {
  if (dict.size === 0) {
    writer.text += '{}'
    return
  }
  const inner = lineBreak(writer, depth + 1)
  const between = writer.item + inner
  writer.text += `{${inner}`
  let before = ''
  for (const [key, item] of writer.sortKeys ? sortedEntries(dict) : dict) {
    writer.text += before + writer.encodeKey(keyText(key))
    before = between
    write(writer, item, depth + 1)
  }
  writer.text += `${lineBreak(writer, depth)}}`
}

function sortedEntries(dict: PythonDict): [PythonKey, PythonValue][] {
  return [...dict].sort(([left], [right]) =>
    compare('<', left, right) ? -1 : compare('<', right, left) ? 1 : 0,
  )
}

function keyText(key: PythonKey): string {
  if (typeof key === 'string') return key
  if (key === null) return 'null'
  if (typeof key === 'boolean') return key ? 'true' : 'false'
  if (key instanceof PythonFloat) return encodeFloat(key.value)
  if (key instanceof PythonTuple) {
    throw new PythonError('TypeError', 'keys must be str, int, float, bool or None, not tuple')
  }
  return encodeNumber(key)
}

function encodeNumber(value: number | bigint): string {
  if (typeof value === 'bigint') return formatInt(value)
  if (Number.isSafeInteger(value)) return String(value)
  return Number.isInteger(value) ? BigInt(value).toString() : encodeFloat(value)
}

function encodeFloat(value: number): string {
  if (Number.isFinite(value)) return formatFloat(value)
  return Number.isNaN(value) ? 'NaN' : value < 0 ? '-Infinity' : 'Infinity'
}
