type Token =
  | { readonly kind: 'number'; readonly value: number; readonly at: number }
  | { readonly kind: 'name' | 'sign'; readonly text: string; readonly at: number }
  | { readonly kind: 'end'; readonly at: number }

interface ExpressionReader {
  readonly tokens: readonly Token[]
  next: number
  depth: number
}

const longest = 2000
const deepest = 100

const constants: ReadonlyMap<string, number> = new Map([
  ['pi', Math.PI],
  ['e', Math.E],
])

const functions: ReadonlyMap<string, (...values: number[]) => number> = new Map([
  ['sqrt', Math.sqrt],
  ['abs', Math.abs],
  ['round', Math.round],
  ['floor', Math.floor],
  ['ceil', Math.ceil],
  ['exp', Math.exp],
  ['ln', Math.log],
  ['log', Math.log10],
  ['sin', Math.sin],
  ['cos', Math.cos],
  ['tan', Math.tan],
  ['min', Math.min],
  ['max', Math.max],
])

/**
 * The value of an arithmetic expression: `+ - * / % ^` (or `**`), parentheses, `pi`, `e` and the
 * usual functions. Nothing is ever run as code; what cannot be read is thrown with its place.
 */
export function evaluateExpression(expression: string): number {
  if (expression.length > longest) {
    throw new RangeError(`The expression has ${expression.length} characters; at most ${longest}.`)
  }
  const reader: ExpressionReader = { tokens: tokensOf(expression), next: 0, depth: 0 }
  const value = readSum(reader)
  const rest = peek(reader)
  if (rest.kind !== 'end') throw unexpected(rest, 'an operator')
  if (!Number.isFinite(value)) throw new RangeError(`The value is ${describe(value)}.`)
  return value === 0 ? 0 : value
}

function describe(value: number): string {
  return Number.isNaN(value) ? 'not a real number' : 'too large'
}

const pattern =
  /\s*(?:(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?<name>[A-Za-z]+)|(?<sign>\*\*|[-+*/%^(),×÷−]))/y

const otherSigns: ReadonlyMap<string, string> = new Map([
  ['**', '^'],
  ['×', '*'],
  ['÷', '/'],
  ['−', '-'],
])

function tokensOf(expression: string): Token[] {
  const text = expression.trimEnd()
  const tokens: Token[] = []
  pattern.lastIndex = 0
  let at = 0
  while (at < text.length) {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (!found) throw new SyntaxError(unreadable(text, at))
    const { number, name, sign } = found.groups!
    const start = pattern.lastIndex - (number ?? name ?? sign)!.length
    if (number) tokens.push({ kind: 'number', value: Number(number), at: start })
    else if (name) tokens.push({ kind: 'name', text: name.toLowerCase(), at: start })
    else tokens.push({ kind: 'sign', text: otherSigns.get(sign!) ?? sign!, at: start })
    at = pattern.lastIndex
  }
  tokens.push({ kind: 'end', at: text.length })
  return tokens
}

function unreadable(text: string, at: number): string {
  const place = text.length - text.slice(at).trimStart().length
  const character = String.fromCodePoint(text.codePointAt(place)!)
  return `Cannot read "${character}" at character ${place + 1}.`
}

function peek(reader: ExpressionReader): Token {
  return reader.tokens[reader.next]!
}

function take(reader: ExpressionReader, ...signs: readonly string[]): string | undefined {
  const token = peek(reader)
  if (token.kind !== 'sign' || !signs.includes(token.text)) return undefined
  reader.next++
  return token.text
}

function unexpected(token: Token, wanted: string): SyntaxError {
  if (token.kind === 'end')
    return new SyntaxError(`The expression ends where ${wanted} is missing.`)
  const text = token.kind === 'number' ? token.value : token.text
  return new SyntaxError(`Unexpected "${text}" at character ${token.at + 1}; expected ${wanted}.`)
}

function readSum(reader: ExpressionReader): number {
  if (++reader.depth > deepest) throw new RangeError(`Nested more than ${deepest} deep.`)
  let value = readProduct(reader)
  for (let sign = take(reader, '+', '-'); sign; sign = take(reader, '+', '-')) {
    const right = readProduct(reader)
    value = sign === '+' ? value + right : value - right
  }
  reader.depth--
  return value
}

function readProduct(reader: ExpressionReader): number {
  let value = readSigned(reader)
  for (let sign = take(reader, '*', '/', '%'); sign; sign = take(reader, '*', '/', '%')) {
    const right = readSigned(reader)
    if (sign !== '*' && right === 0) throw new RangeError('Division by zero.')
    value = sign === '*' ? value * right : sign === '/' ? value / right : value % right
  }
  return value
}

function readSigned(reader: ExpressionReader): number {
  let isNegative = false
  for (let sign = take(reader, '+', '-'); sign; sign = take(reader, '+', '-')) {
    if (sign === '-') isNegative = !isNegative
  }
  const value = readPower(reader)
  return isNegative ? -value : value
}

/** Binds tighter than a sign before it and groups to the right: -2^2 is -4, 2^3^2 is 512. */
function readPower(reader: ExpressionReader): number {
  const base = readAtom(reader)
  if (!take(reader, '^')) return base
  if (++reader.depth > deepest) throw new RangeError(`Nested more than ${deepest} deep.`)
  const power = base ** readSigned(reader)
  reader.depth--
  return power
}

function readAtom(reader: ExpressionReader): number {
  const token = peek(reader)
  if (token.kind === 'number') {
    reader.next++
    return token.value
  }
  if (token.kind === 'name') return readName(reader, token.text)
  if (!take(reader, '(')) throw unexpected(token, 'a number')
  const value = readSum(reader)
  close(reader)
  return value
}

function readName(reader: ExpressionReader, name: string): number {
  reader.next++
  const constant = constants.get(name)
  if (constant !== undefined) return constant
  const apply = functions.get(name)
  if (!apply) {
    const known = [...constants.keys(), ...functions.keys()].join(', ')
    throw new SyntaxError(`Unknown name "${name.slice(0, 40)}". Known: ${known}.`)
  }
  if (!take(reader, '(')) throw unexpected(peek(reader), `"(" after ${name}`)
  const values = [readSum(reader)]
  while (take(reader, ',')) values.push(readSum(reader))
  close(reader)
  if (values.length > 1 && apply.length === 1) {
    throw new SyntaxError(
      `${name} takes one value, got ${values.length}; write numbers without commas.`,
    )
  }
  return apply(...values)
}

function close(reader: ExpressionReader): void {
  if (!take(reader, ')')) throw unexpected(peek(reader), '")"')
}
