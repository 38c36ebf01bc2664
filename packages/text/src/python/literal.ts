import { requireHashable, storeItem } from './compare.ts'
import { PythonError } from './error.ts'
import { readNumberLiteral } from './literal-number.ts'
import { readStringLiteral } from './literal-string.ts'
import { negate } from './number.ts'
import type { PythonDict, PythonKey, PythonValue } from './value.ts'
import { PythonFloat, PythonSet, PythonTuple } from './value.ts'

/** Text that is not a Python literal, with the place where reading stopped. */
export class LiteralError extends PythonError {
  readonly offset: number
  readonly line: number
  readonly column: number
  constructor(problem: string, text: string, offset: number) {
    const before = text.slice(0, offset)
    const line = before.split('\n').length
    const column = offset - before.lastIndexOf('\n')
    super('SyntaxError', `${problem} at line ${line}, column ${column}`)
    this.offset = offset
    this.line = line
    this.column = column
  }
}

/** Reads one whole literal, the language of Python's `ast.literal_eval` without bytes and complex. */
export function parseLiteral(text: string): PythonValue {
  const cursor: Cursor = { text, offset: 0, depth: 0 }
  skipSpace(cursor, true)
  const first = readItem(cursor)
  skipSpace(cursor, false)
  const value = text[cursor.offset] === ',' ? readBareTuple(cursor, first) : first
  skipSpace(cursor, true)
  if (cursor.offset < text.length) fail(cursor, 'Expected the end of the literal')
  return value
}

/** A place in a text being read; `depth` counts the brackets open around it. */
interface Cursor {
  readonly text: string
  offset: number
  depth: number
}

/** As deep as Python's own parser allows brackets to nest. */
const MAXIMUM_NESTING = 200

function fail(cursor: Cursor, problem: string): never {
  const found = cursor.text[cursor.offset]
  const seen = found === undefined ? 'the end of the text' : JSON.stringify(found)
  throw new LiteralError(`${problem}, found ${seen}`, cursor.text, cursor.offset)
}

const INLINE_SPACE = /(?:[ \t\f]+|\\\r?\n)*(?:#[^\n]*)?/y
const ANY_SPACE = /(?:[ \t\f\r\n]+|\\\r?\n|#[^\n]*)*/y

function skipSpace(cursor: Cursor, lines: boolean): void {
  const pattern = lines || cursor.depth > 0 ? ANY_SPACE : INLINE_SPACE
  pattern.lastIndex = cursor.offset
  pattern.test(cursor.text)
  cursor.offset = pattern.lastIndex
}

const SIGNED = /[-+]/
const DIGIT = /[0-9]/
const WORD = /[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*/y
const STRING_START = /[A-Za-z]{0,3}['"]/y

function readItem(cursor: Cursor): PythonValue {
  const { text, offset } = cursor
  const character = text[offset] ?? ''
  const following = text[offset + 1] ?? ''
  if (SIGNED.test(character)) return readSigned(cursor)
  if (DIGIT.test(character) || (character === '.' && DIGIT.test(following))) {
    const number = readNumberLiteral(text, offset)
    if ('problem' in number) fail(cursor, number.problem)
    cursor.offset = number.end
    return number.value
  }
  STRING_START.lastIndex = offset
  if (STRING_START.test(text)) return readStrings(cursor)
  if (character === '[') return nest(cursor, ']', items => items)
  if (character === '(') return nest(cursor, ')', toParenthesised)
  if (character === '{') return readBraces(cursor)
  return readWord(cursor)
}

function readSigned(cursor: Cursor): PythonValue {
  const sign = cursor.text[cursor.offset]
  cursor.offset++
  skipSpace(cursor, false)
  const value = readItem(cursor)
  if (typeof value !== 'number' && typeof value !== 'bigint' && !(value instanceof PythonFloat)) {
    fail(cursor, `Expected a number after ${sign}`)
  }
  return sign === '-' ? negate(value) : value
}

function readStrings(cursor: Cursor): string {
  let value = ''
  while (true) {
    const part = readStringLiteral(cursor.text, cursor.offset)
    if ('problem' in part) throw new LiteralError(part.problem, cursor.text, part.at)
    value += part.value
    cursor.offset = part.end
    const { offset } = cursor
    skipSpace(cursor, false)
    STRING_START.lastIndex = cursor.offset
    if (STRING_START.test(cursor.text)) continue
    cursor.offset = offset
    return value
  }
}

function readWord(cursor: Cursor): PythonValue {
  WORD.lastIndex = cursor.offset
  const word = WORD.exec(cursor.text)?.[0]
  const end = WORD.lastIndex
  const value =
    word === 'None' ? null : word === 'True' ? true : word === 'False' ? false : undefined
  if (value !== undefined) {
    cursor.offset = end
    return value
  }
  if (word === 'set') return readEmptySet(cursor)
  return fail(cursor, word === undefined ? 'Expected a literal' : `"${word}" is not a literal`)
}

const EMPTY_SET = /set[ \t]*\([ \t]*\)/y

function readEmptySet(cursor: Cursor): PythonSet {
  EMPTY_SET.lastIndex = cursor.offset
  if (!EMPTY_SET.test(cursor.text)) fail(cursor, 'Expected set() without arguments')
  cursor.offset = EMPTY_SET.lastIndex
  return new PythonSet([])
}

const toParenthesised = (items: PythonValue[], comma: boolean): PythonValue =>
  items.length === 1 && !comma ? (items[0] as PythonValue) : new PythonTuple(items)

function open(cursor: Cursor): void {
  if (++cursor.depth > MAXIMUM_NESTING) {
    fail(cursor, `Brackets nest deeper than ${MAXIMUM_NESTING} levels`)
  }
  cursor.offset++
  skipSpace(cursor, true)
}

function close(cursor: Cursor): void {
  cursor.offset++
  cursor.depth--
}

/** Skips a comma if there is one; without one, the bracket must close here. */
function takeComma(cursor: Cursor, closing: string): boolean {
  skipSpace(cursor, true)
  if (cursor.text[cursor.offset] !== ',') {
    if (cursor.text[cursor.offset] !== closing) fail(cursor, `Expected "," or "${closing}"`)
    return false
  }
  cursor.offset++
  skipSpace(cursor, true)
  return true
}

function nest(
  cursor: Cursor,
  closing: string,
  build: (items: PythonValue[], comma: boolean) => PythonValue,
): PythonValue {
  open(cursor)
  const items: PythonValue[] = []
  let comma = false
  while (cursor.text[cursor.offset] !== closing) {
    items.push(readItem(cursor))
    comma = takeComma(cursor, closing)
  }
  close(cursor)
  return build(items, comma)
}

function readBareTuple(cursor: Cursor, first: PythonValue): PythonTuple {
  const items = [first]
  while (cursor.text[cursor.offset] === ',') {
    cursor.offset++
    skipSpace(cursor, false)
    const next = cursor.text[cursor.offset]
    if (next === undefined || next === '\n' || next === '\r') break
    items.push(readItem(cursor))
    skipSpace(cursor, false)
  }
  return new PythonTuple(items)
}

function readKey(cursor: Cursor): PythonKey {
  const { text, offset } = cursor
  const value = readItem(cursor)
  try {
    return requireHashable(value)
  } catch (cause) {
    throw new LiteralError((cause as Error).message, text, offset)
  }
}

function readBraces(cursor: Cursor): PythonValue {
  open(cursor)
  // a dict serves as a set too: equal keys become one
  const dict: PythonDict = new Map()
  let isSet = false
  while (cursor.text[cursor.offset] !== '}') {
    const key = readKey(cursor)
    skipSpace(cursor, true)
    const colon = cursor.text[cursor.offset] === ':'
    if (dict.size === 0) isSet = !colon
    if (colon === isSet) fail(cursor, isSet ? 'Expected "," or "}"' : 'Expected ":"')
    storeItem(dict, key, colon ? readAfterColon(cursor) : null)
    takeComma(cursor, '}')
  }
  close(cursor)
  return isSet ? new PythonSet([...dict.keys()]) : dict
}

function readAfterColon(cursor: Cursor): PythonValue {
  cursor.offset++
  skipSpace(cursor, true)
  return readItem(cursor)
}
