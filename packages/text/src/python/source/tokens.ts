import { readNumberLiteral } from '../literal-number.ts'
import { readStringLiteral, unescapeString } from '../literal-string.ts'
import { PythonFloat } from '../value.ts'

/** A piece of Python source. A float is told from an int by its kind. */
export type Token = { readonly line: number } & (
  | {
      readonly kind: 'name' | 'operator' | 'newline' | 'indent' | 'dedent' | 'end'
      readonly text: string
    }
  | { readonly kind: 'int'; readonly value: number | bigint }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'fstring'; readonly parts: readonly RawPart[] }
)

/** A part of an f-string as it is written: text, or the source of an expression. */
export type RawPart =
  | string
  | {
      readonly source: string
      readonly conversion?: 'r' | 's' | 'a'
      readonly format: readonly RawPart[]
      readonly line: number
    }

interface TokenReader {
  readonly source: string
  offset: number
  line: number
  depth: number
  readonly indents: number[]
  readonly tokens: Token[]
}

/** Source that is not Python of the subset read here. */
export class SourceError extends Error {
  override name = 'SourceError'
}

/** Cuts a source into tokens, its indentation made visible. */
export function tokenize(source: string, firstLine = 1): readonly Token[] {
  const text = source.replace(/\r\n?/g, '\n')
  const reader: TokenReader = {
    source: text,
    offset: 0,
    line: firstLine,
    depth: 0,
    indents: [0],
    tokens: [],
  }
  readIndent(reader)
  while (reader.offset < text.length) readToken(reader)
  const last = reader.tokens.at(-1)
  if (last && last.kind !== 'newline' && last.kind !== 'dedent') push(reader, 'newline', '')
  for (let open = reader.indents.length; open > 1; open--) push(reader, 'dedent', '')
  push(reader, 'end', '')
  return reader.tokens
}

function push(
  reader: TokenReader,
  kind: 'name' | 'operator' | 'newline' | 'indent' | 'dedent' | 'end',
  text: string,
): void {
  reader.tokens.push({ kind, text, line: reader.line })
}

const SPACE = /[ \t\f]*(?:\\\n[ \t\f]*)*/y
const COMMENT = /#[^\n]*/y
const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy
const NUMBER = /\.?[0-9]/y
const STRING = /([rRbBuUfF]{0,2})("""|'''|"|')/y
const OPERATOR =
  /\*\*=|\/\/=|<<=|>>=|->|:=|\*\*|\/\/|<<|>>|[<>=!+\-*/%|&^]=|\.\.\.|[-+*/%|&~^<>=()[\]{},.:;@]/y

function match(pattern: RegExp, reader: TokenReader): RegExpExecArray | null {
  pattern.lastIndex = reader.offset
  return pattern.exec(reader.source)
}

function readToken(reader: TokenReader): void {
  const space = match(SPACE, reader)?.[0] ?? ''
  reader.offset += space.length
  reader.line += space.split('\n').length - 1
  const comment = match(COMMENT, reader)
  if (comment) reader.offset += comment[0].length
  if (reader.offset >= reader.source.length) return
  const quote = match(STRING, reader)
  const name = quote ? null : match(NAME, reader)
  const number = (quote ?? name) ? null : match(NUMBER, reader)
  if (reader.source[reader.offset] === '\n') readLineEnd(reader)
  else if (quote) readString(reader, quote)
  else if (name) take(reader, 'name', name[0])
  else if (number) readNumber(reader)
  else readOperator(reader)
}

function readOperator(reader: TokenReader): void {
  const operator = match(OPERATOR, reader)
  if (!operator) throw new SourceError(`Line ${reader.line}: "${reader.source[reader.offset]}"`)
  if ('([{'.includes(operator[0])) reader.depth++
  if (')]}'.includes(operator[0])) reader.depth--
  take(reader, 'operator', operator[0])
}

function take(reader: TokenReader, kind: 'name' | 'operator', text: string): void {
  push(reader, kind, text)
  reader.offset += text.length
}

function readLineEnd(reader: TokenReader): void {
  const isInside = reader.depth > 0
  const last = reader.tokens.at(-1)?.kind
  const isEmpty = last === undefined || last === 'newline' || last === 'indent' || last === 'dedent'
  if (!isInside && !isEmpty) push(reader, 'newline', '')
  reader.offset++
  reader.line++
  if (!isInside) readIndent(reader)
}

const BLANK = /(?:[ \t\f]*(?:#[^\n]*)?\n)*/y

function readIndent(reader: TokenReader): void {
  const blank = match(BLANK, reader)?.[0] ?? ''
  reader.offset += blank.length
  reader.line += blank.split('\n').length - 1
  const space = match(/[ \t]*/y, reader)?.[0] ?? ''
  const rest = reader.source[reader.offset + space.length]
  if (rest === undefined || rest === '#') return
  reader.offset += space.length
  const width = space.replaceAll('\t', '        ').length
  while (width < (reader.indents.at(-1) as number)) {
    reader.indents.pop()
    push(reader, 'dedent', '')
  }
  if (width > (reader.indents.at(-1) as number)) {
    reader.indents.push(width)
    push(reader, 'indent', '')
  }
}

function readNumber(reader: TokenReader): void {
  const { line } = reader
  const number = readNumberLiteral(reader.source, reader.offset)
  if ('problem' in number) throw new SourceError(`Line ${line}: ${number.problem}`)
  const { value } = number
  reader.offset = number.end
  reader.tokens.push(
    value instanceof PythonFloat
      ? { kind: 'float', value: value.value, line }
      : { kind: 'int', value, line },
  )
}

function readString(reader: TokenReader, [whole, prefix = '', quote = '']: RegExpExecArray): void {
  const { line, offset, source } = reader
  if (/f/i.test(prefix)) {
    reader.offset += whole.length
    const parts = readParts(reader, quote, /r/i.test(prefix))
    reader.tokens.push({ kind: 'fstring', parts, line })
    return
  }
  const text = readStringLiteral(source, offset)
  if ('problem' in text) throw new SourceError(`Line ${line}: ${text.problem}`)
  reader.offset = text.end
  reader.line += source.slice(offset, text.end).split('\n').length - 1
  reader.tokens.push({ kind: 'string', value: text.value, line })
}

function unescaped(body: string, line: number): string {
  const text = unescapeString(body)
  if (typeof text === 'string') return text
  throw new SourceError(`Line ${line}: ${text.problem}`)
}

/** Passes over a string inside an expression of an f-string. */
function skipString(reader: TokenReader, quote: string): void {
  for (; reader.offset < reader.source.length; reader.offset++) {
    if (reader.source.startsWith(quote, reader.offset)) {
      reader.offset += quote.length
      return
    }
    if (reader.source[reader.offset] === '\\') reader.offset++
  }
  throw new SourceError(`Line ${reader.line}: a string without end`)
}

/** The parts of an f-string, or of the format inside one, up to `end`. */
function readParts(reader: TokenReader, end: string, isRaw: boolean): RawPart[] {
  const parts: RawPart[] = []
  let text = ''
  const flush = (): void => {
    if (text !== '') parts.push(isRaw ? text : unescaped(text, reader.line))
    text = ''
  }
  while (!reader.source.startsWith(end, reader.offset)) {
    const character = reader.source[reader.offset]
    if (character === undefined)
      throw new SourceError(`Line ${reader.line}: an f-string without end`)
    const two = reader.source.slice(reader.offset, reader.offset + 2)
    if (end !== '}' && (two === '{{' || two === '}}')) {
      text += character
      reader.offset += 2
    } else if (character === '{') {
      flush()
      parts.push(readPlaceholder(reader, isRaw))
    } else {
      const length = character === '\\' && !isRaw ? 2 : 1
      text += reader.source.slice(reader.offset, reader.offset + length)
      if (character === '\n') reader.line++
      reader.offset += length
    }
  }
  flush()
  reader.offset += end.length
  return parts
}

function readPlaceholder(reader: TokenReader, isRaw: boolean): Exclude<RawPart, string> {
  const start = ++reader.offset
  const { line } = reader
  skipExpression(reader)
  const source = reader.source.slice(start, reader.offset)
  let conversion: 'r' | 's' | 'a' | undefined
  if (reader.source[reader.offset] === '!') {
    conversion = readConversion(reader)
    reader.offset += 2
  }
  let format: RawPart[] = []
  if (reader.source[reader.offset] === ':') {
    reader.offset++
    format = readParts(reader, '}', isRaw)
  } else reader.offset++
  return { source, format, line, ...(conversion && { conversion }) }
}

function readConversion({ source, offset, line }: TokenReader): 'r' | 's' | 'a' {
  const letter = source[offset + 1]
  if (letter === 'r' || letter === 's' || letter === 'a') return letter
  throw new SourceError(`Line ${line}: an f-string knows no conversion !${letter}`)
}

/** To the end of an expression in an f-string: a `}`, `:` or `!` outside brackets and strings. */
function skipExpression(reader: TokenReader): void {
  let depth = 0
  for (; reader.offset < reader.source.length; reader.offset++) {
    const character = reader.source[reader.offset] as string
    if (character === '"' || character === "'") {
      const triple = character.repeat(3)
      const quote = reader.source.startsWith(triple, reader.offset) ? triple : character
      reader.offset += quote.length
      skipString(reader, quote)
      reader.offset--
    } else if ('([{'.includes(character)) depth++
    else if (depth > 0 && ')]}'.includes(character)) depth--
    else if (depth === 0 && isExpressionEnd(reader, character)) return
  }
}

function isExpressionEnd(reader: TokenReader, character: string): boolean {
  if (character === '}' || character === ':') return true
  return character === '!' && reader.source[reader.offset + 1] !== '='
}
