import { unescapeString } from '../../python/literal-string.ts'
import { PythonFloat, readInt } from '../../python/value.ts'
import { TemplateSyntaxError } from '../error.ts'

/** One token of a template; `at` is its offset in the normalized source. */
export type Token =
  | { readonly kind: 'data'; readonly at: number; readonly value: string }
  | { readonly kind: 'name'; readonly at: number; readonly value: string }
  | { readonly kind: 'string'; readonly at: number; readonly value: string }
  | { readonly kind: 'number'; readonly at: number; readonly value: number | bigint | PythonFloat }
  | { readonly kind: 'operator'; readonly at: number; readonly value: string }
  | { readonly kind: 'block-begin' | 'block-end'; readonly at: number; readonly value: string }
  | { readonly kind: 'print-begin' | 'print-end'; readonly at: number; readonly value: string }
  | { readonly kind: 'end'; readonly at: number; readonly value: string }

/** What Python's `str.isspace` and the `\s` of its regular expressions accept. */
const PYTHON_SPACE =
  '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'

const space = (pattern: string, flags: string): RegExp =>
  new RegExp(pattern.replaceAll('\\s', `[${PYTHON_SPACE}]`), flags)

const TAG = /\{[{%#]/g
const RAW = space('\\{%([-+]?)\\s*raw\\s*(?:-%\\}\\s*|%\\})', 'y')
const END_RAW = space('\\{%([-+]?)\\s*endraw\\s*(?:\\+%\\}|-%\\}\\s*|%\\}\\n?)', 'g')
const COMMENT_END = space('\\+#\\}|-#\\}\\s*|#\\}\\n?', 'g')
const BLOCK_END = space('\\+%\\}|-%\\}\\s*|%\\}\\n?', 'y')
const PRINT_END = space('-\\}\\}\\s*|\\}\\}', 'y')
const SPACE = space('\\s+', 'y')
const ONLY_SPACE = space('^\\s+$', '')
const FLOAT =
  /(?<!\.)(?:[0-9]+_)*[0-9]+(?:(?:\.(?:[0-9]+_)*[0-9]+)?[eE][-+]?(?:[0-9]+_)*[0-9]+|\.(?:[0-9]+_)*[0-9]+)/y
const INTEGER =
  /0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?[0-9])*|0(?:_?0)*/y
const NAME = /[\p{ID_Start}_][\p{ID_Continue}]*/uy
const STRING = /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y

/** A template source as Jinja reads it: line feeds only, one trailing line feed dropped. */
export function normalizeSource(source: string): string {
  const lines = source.replace(/\r\n?/g, '\n')
  return lines.endsWith('\n') ? lines.slice(0, -1) : lines
}

interface Lexer {
  readonly source: string
  readonly tokens: Token[]
  offset: number
  /** Whether what was read last ended a line, so that spaces before a tag may be stripped. */
  lineStarting: boolean
}

/** Cuts a normalized source into tokens, with `trim_blocks` and `lstrip_blocks` on. */
export function tokenize(source: string): Token[] {
  const lexer: Lexer = { source, tokens: [], offset: 0, lineStarting: true }
  while (lexer.offset < source.length) readData(lexer)
  lexer.tokens.push({ kind: 'end', at: source.length, value: '' })
  return lexer.tokens
}

function readData(lexer: Lexer): void {
  const { source, offset } = lexer
  TAG.lastIndex = offset
  const tag = TAG.exec(source)
  if (!tag) {
    pushData(lexer, offset, source.slice(offset))
    lexer.offset = source.length
    return
  }
  const text = source.slice(offset, tag.index)
  RAW.lastIndex = tag.index
  const raw = RAW.exec(source)
  if (raw) {
    pushData(lexer, offset, stripBefore(lexer, text, raw[1] as string))
    readRaw(lexer, RAW.lastIndex, raw[0])
    return
  }
  const sign = source[tag.index + 2] ?? ''
  const control = sign === '-' || sign === '+' ? sign : ''
  const isPrint = tag[0] === '{{'
  pushData(lexer, offset, stripBefore(lexer, text, isPrint && control === '' ? '+' : control))
  lexer.offset = tag.index + 2 + control.length
  lexer.lineStarting = false
  if (tag[0] === '{#') readComment(lexer, tag.index)
  else readTag(lexer, tag.index, isPrint)
}

function pushData(lexer: Lexer, at: number, value: string): void {
  if (value !== '') lexer.tokens.push({ kind: 'data', at, value })
}

/** The data before a tag, without the spaces that its whitespace control takes away. */
function stripBefore(lexer: Lexer, text: string, control: string): string {
  if (control === '+') return text
  if (control === '-') {
    let end = text.length
    while (end > 0 && ONLY_SPACE.test(text[end - 1] as string)) end--
    return text.slice(0, end)
  }
  const lineStart = text.lastIndexOf('\n') + 1
  if (lineStart === 0 && !lexer.lineStarting) return text
  return ONLY_SPACE.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text
}

function readRaw(lexer: Lexer, begin: number, opening: string): void {
  lexer.lineStarting = opening.endsWith('\n')
  END_RAW.lastIndex = begin
  const end = END_RAW.exec(lexer.source)
  if (!end) throw new TemplateSyntaxError('Missing end of raw directive', lexer.source, begin)
  const text = lexer.source.slice(begin, end.index)
  pushData(lexer, begin, stripBefore(lexer, text, end[1] as string))
  finishTag(lexer, END_RAW.lastIndex)
}

function readComment(lexer: Lexer, begin: number): void {
  COMMENT_END.lastIndex = lexer.offset
  if (!COMMENT_END.test(lexer.source)) {
    throw new TemplateSyntaxError('Missing end of comment tag', lexer.source, begin)
  }
  finishTag(lexer, COMMENT_END.lastIndex)
}

function finishTag(lexer: Lexer, end: number): void {
  lexer.offset = end
  lexer.lineStarting = lexer.source[end - 1] === '\n'
}

function readTag(lexer: Lexer, begin: number, isPrint: boolean): void {
  const { source, tokens } = lexer
  const closing = isPrint ? PRINT_END : BLOCK_END
  const open: string[] = []
  tokens.push({ kind: isPrint ? 'print-begin' : 'block-begin', at: begin, value: '' })
  while (true) {
    closing.lastIndex = lexer.offset
    if (open.length === 0 && closing.test(source)) {
      tokens.push({ kind: isPrint ? 'print-end' : 'block-end', at: lexer.offset, value: '' })
      finishTag(lexer, closing.lastIndex)
      return
    }
    if (lexer.offset >= source.length) {
      // Jinja's parser, not its lexer, complains about a tag without end
      return
    }
    readToken(lexer, open)
  }
}

const match = (pattern: RegExp, lexer: Lexer): string | undefined => {
  pattern.lastIndex = lexer.offset
  return pattern.exec(lexer.source)?.[0]
}

function readToken(lexer: Lexer, open: string[]): void {
  const { tokens, offset: at } = lexer
  const take = (text: string): string => {
    lexer.offset += text.length
    return text
  }
  const gap = match(SPACE, lexer)
  if (gap !== undefined) {
    take(gap)
    return
  }
  const float = match(FLOAT, lexer)
  if (float !== undefined) {
    const value = new PythonFloat(Number(take(float).replaceAll('_', '')))
    tokens.push({ kind: 'number', at, value })
    return
  }
  const integer = match(INTEGER, lexer)
  if (integer !== undefined) {
    const value = readInt(take(integer).replaceAll('_', ''))
    tokens.push({ kind: 'number', at, value })
    return
  }
  const name = match(NAME, lexer)
  if (name !== undefined) {
    tokens.push({ kind: 'name', at, value: take(name) })
    return
  }
  const quoted = match(STRING, lexer)
  if (quoted !== undefined) {
    tokens.push({ kind: 'string', at, value: unquote(lexer, take(quoted), at) })
    return
  }
  const operator = match(OPERATOR, lexer)
  if (operator === undefined) {
    const character = String.fromCodePoint(lexer.source.codePointAt(at) as number)
    throw new TemplateSyntaxError(`unexpected char ${JSON.stringify(character)}`, lexer.source, at)
  }
  balance(lexer, operator, open)
  tokens.push({ kind: 'operator', at, value: take(operator) })
}

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['(', ')'],
  ['[', ']'],
])

/** As many brackets as Python's compiler takes, so that no expression can exhaust the stack. */
const MAXIMUM_BRACKETS = 200

function balance(lexer: Lexer, operator: string, open: string[]): void {
  const closing = CLOSING.get(operator)
  if (closing !== undefined) {
    open.push(closing)
    if (open.length > MAXIMUM_BRACKETS) {
      throw new TemplateSyntaxError('too many nested brackets', lexer.source, lexer.offset)
    }
  } else if (operator === '}' || operator === ')' || operator === ']') {
    const expected = open.pop()
    if (expected === operator) return
    const hint = expected === undefined ? '' : `, expected '${expected}'`
    throw new TemplateSyntaxError(`unexpected '${operator}'${hint}`, lexer.source, lexer.offset)
  }
}

const QUIRKY = /\\[\u0080-\uffff]/
const NOT_ASCII = /[\u0080-\u{10ffff}]/gu

function unquote(lexer: Lexer, quoted: string, at: number): string {
  let body = quoted.slice(1, -1)
  // Jinja writes other characters as escapes before it resolves escapes, so a backslash before one
  // pairs with the backslash of its escape
  if (QUIRKY.test(body)) body = body.replace(NOT_ASCII, escapeCharacter)
  const value = unescapeString(body)
  if (typeof value === 'string') return value
  throw new TemplateSyntaxError(value.problem, lexer.source, at + 1 + value.at)
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) as number
  const digits = code.toString(16)
  if (code <= 0xff) return `\\x${digits}`
  return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`
}
