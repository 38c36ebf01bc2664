import { parseArguments, parseFilter, parseTest } from './parse-call.ts'
import type { ArithmeticOperator, Comparison, ComparisonOperator, Expression } from './syntax.ts'
import type { TokenStream } from './tokens.ts'
import {
  advance,
  current,
  deeper,
  describe,
  expect,
  fail,
  following,
  isName,
  isOperator,
  takeName,
  takeOperator,
} from './tokens.ts'

/** How a list of expressions separated by commas may look. */
export interface TupleOptions {
  /** Whether `a if b else c` may stand in it; after `for … in` and `if` it may not. */
  readonly conditional: boolean
  /** A name that ends it, besides the end of the tag. */
  readonly until?: string
  /** Whether parentheses stand around it, so that it may be empty. */
  readonly parenthesised?: boolean
}

/** Reads an expression, with or without a conditional at its top. */
export function parseExpression(stream: TokenStream, conditional = true): Expression {
  return deeper(stream, () => (conditional ? parseConditional(stream) : parseOr(stream)))
}

/** Reads an expression, or a tuple if commas follow. */
export function parseTuple(stream: TokenStream, options: TupleOptions): Expression {
  const { at } = current(stream)
  const items: Expression[] = []
  let comma = false
  while (!isTupleEnd(stream, options.until)) {
    items.push(parseExpression(stream, options.conditional))
    if (!takeOperator(stream, ',')) break
    comma = true
  }
  if (comma || (items.length === 0 && options.parenthesised)) return { kind: 'tuple', at, items }
  return items[0] ?? fail(stream, `Expected an expression, got '${describe(current(stream))}'`)
}

/** Whether a list without brackets ends at the token at hand. */
export function isTupleEnd(stream: TokenStream, until: string | undefined): boolean {
  const token = current(stream)
  if (token.kind === 'print-end' || token.kind === 'block-end') return true
  return isOperator(stream, ')') || (until !== undefined && isName(token, until))
}

function parseConditional(stream: TokenStream): Expression {
  const { at } = current(stream)
  let then = parseOr(stream)
  while (takeName(stream, 'if')) {
    const test = parseOr(stream)
    const otherwise = takeName(stream, 'else')
      ? deeper(stream, () => parseConditional(stream))
      : undefined
    then = { kind: 'conditional', at, test, then, otherwise }
  }
  return then
}

function parseOr(stream: TokenStream): Expression {
  const { at } = current(stream)
  let left = parseAnd(stream)
  while (takeName(stream, 'or')) left = { kind: 'or', at, left, right: parseAnd(stream) }
  return left
}

function parseAnd(stream: TokenStream): Expression {
  const { at } = current(stream)
  let left = parseNot(stream)
  while (takeName(stream, 'and')) left = { kind: 'and', at, left, right: parseNot(stream) }
  return left
}

function parseNot(stream: TokenStream): Expression {
  const { at } = current(stream)
  if (!takeName(stream, 'not')) return parseComparison(stream)
  return { kind: 'unary', at, operator: 'not', value: deeper(stream, () => parseNot(stream)) }
}

const COMPARISONS = new Set(['==', '!=', '<', '<=', '>', '>='])

function takeComparison(stream: TokenStream): ComparisonOperator | undefined {
  const token = current(stream)
  if (token.kind === 'operator' && COMPARISONS.has(token.value)) {
    stream.position++
    return token.value as ComparisonOperator
  }
  if (takeName(stream, 'in')) return 'in'
  if (!isName(token, 'not') || !isName(following(stream), 'in')) return undefined
  stream.position += 2
  return 'not in'
}

function parseComparison(stream: TokenStream): Expression {
  const { at } = current(stream)
  const left = parseSum(stream)
  const chain: Comparison[] = []
  while (true) {
    const operator = takeComparison(stream)
    if (operator === undefined) break
    chain.push({ operator, value: parseSum(stream) })
  }
  return chain.length === 0 ? left : { kind: 'comparison', at, left, chain }
}

function parseSum(stream: TokenStream): Expression {
  return parseArithmetic(stream, ['+', '-'], parseConcatenation)
}

function parseConcatenation(stream: TokenStream): Expression {
  const { at } = current(stream)
  const parts = [parseProduct(stream)]
  while (takeOperator(stream, '~')) parts.push(parseProduct(stream))
  return parts.length === 1 ? (parts[0] as Expression) : { kind: 'concatenation', at, parts }
}

function parseProduct(stream: TokenStream): Expression {
  return parseArithmetic(stream, ['*', '/', '//', '%'], parsePower)
}

// Jinja reads powers from the left, unlike Python
function parsePower(stream: TokenStream): Expression {
  return parseArithmetic(stream, ['**'], each => parseUnary(each, true))
}

function parseArithmetic(
  stream: TokenStream,
  operators: readonly ArithmeticOperator[],
  operand: (stream: TokenStream) => Expression,
): Expression {
  const { at } = current(stream)
  let left = operand(stream)
  while (true) {
    const operator = operators.find(candidate => takeOperator(stream, candidate))
    if (operator === undefined) return left
    left = { kind: 'arithmetic', at, operator, left, right: operand(stream) }
  }
}

function parseUnary(stream: TokenStream, filters: boolean): Expression {
  const { at } = current(stream)
  let value: Expression
  if (isOperator(stream, '-') || isOperator(stream, '+')) {
    const operator = advance(stream).value as '+' | '-'
    value = { kind: 'unary', at, operator, value: deeper(stream, () => parseUnary(stream, false)) }
  } else value = parsePrimary(stream)
  value = parsePostfix(stream, value)
  return filters ? parseFilters(stream, value) : value
}

const WORDS: ReadonlyMap<string, null | boolean> = new Map([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
])

/** Reads a name, a literal, or a bracketed expression. */
export function parsePrimary(stream: TokenStream): Expression {
  const token = current(stream)
  const { at } = token
  switch (token.kind) {
    case 'name': {
      advance(stream)
      const word = WORDS.get(token.value)
      return word === undefined
        ? { kind: 'name', at, name: token.value }
        : { kind: 'constant', at, value: word }
    }
    case 'string':
      return { kind: 'constant', at, value: takeStrings(stream) }
    case 'number':
      advance(stream)
      return { kind: 'constant', at, value: token.value }
    default:
      return parseBracketed(stream)
  }
}

function takeStrings(stream: TokenStream): string {
  let text = ''
  for (let token = current(stream); token.kind === 'string'; token = current(stream)) {
    text += token.value
    advance(stream)
  }
  return text
}

function parseBracketed(stream: TokenStream): Expression {
  const token = current(stream)
  if (takeOperator(stream, '(')) {
    const value = parseTuple(stream, { conditional: true, parenthesised: true })
    expect(stream, 'operator', ')')
    return value
  }
  if (takeOperator(stream, '[')) {
    const items = parseItems(stream, ']', () => parseExpression(stream))
    return { kind: 'list', at: token.at, items }
  }
  if (takeOperator(stream, '{')) {
    const pairs = parseItems(stream, '}', () => {
      const key = parseExpression(stream)
      expect(stream, 'operator', ':')
      return [key, parseExpression(stream)] as const
    })
    return { kind: 'dict', at: token.at, pairs }
  }
  return fail(stream, `unexpected '${describe(token)}'`)
}

/** Reads items separated by commas up to a closing bracket, which is taken too. */
export function parseItems<T>(stream: TokenStream, closing: string, parse: () => T): T[] {
  const items: T[] = []
  while (!isOperator(stream, closing)) {
    if (items.length > 0) expect(stream, 'operator', ',')
    if (isOperator(stream, closing)) break
    items.push(parse())
  }
  expect(stream, 'operator', closing)
  return items
}

/** Reads the attributes, subscripts and calls behind a value. */
export function parsePostfix(stream: TokenStream, start: Expression): Expression {
  let value = start
  while (true) {
    if (isOperator(stream, '.')) value = parseAttribute(stream, value)
    else if (isOperator(stream, '[')) value = parseSubscript(stream, value)
    else if (isOperator(stream, '(')) value = parseCall(stream, value)
    else return value
  }
}

function parseCall(stream: TokenStream, callee: Expression): Expression {
  const { at } = current(stream)
  return { kind: 'call', at, callee, input: parseArguments(stream) }
}

function parseFilters(stream: TokenStream, start: Expression): Expression {
  let value = start
  while (true) {
    if (isOperator(stream, '|')) value = parseFilter(stream, value)
    else if (isName(current(stream), 'is')) value = parseTest(stream, value)
    else if (isOperator(stream, '(')) value = parseCall(stream, value)
    else return value
  }
}

function parseAttribute(stream: TokenStream, object: Expression): Expression {
  const { at } = advance(stream)
  const token = advance(stream)
  if (token.kind === 'name') return { kind: 'attribute', at, object, name: token.value }
  if (token.kind === 'number' && typeof token.value !== 'object') {
    return { kind: 'item', at, object, key: { kind: 'constant', at: token.at, value: token.value } }
  }
  return fail(stream, 'expected name or number', token)
}

function parseSubscript(stream: TokenStream, object: Expression): Expression {
  const { at } = advance(stream)
  const subscripts: Subscript[] = []
  while (!isOperator(stream, ']')) {
    if (subscripts.length > 0) expect(stream, 'operator', ',')
    subscripts.push(parseSubscribed(stream))
  }
  expect(stream, 'operator', ']')
  const [only] = subscripts
  if (subscripts.length === 1 && only !== undefined) {
    return Array.isArray(only)
      ? { kind: 'slice', at, object, bounds: only }
      : { kind: 'item', at, object, key: only as Expression }
  }
  const items = subscripts.map(each =>
    Array.isArray(each) ? fail(stream, 'a slice cannot stand in a tuple') : (each as Expression),
  )
  return { kind: 'item', at, object, key: { kind: 'tuple', at, items } }
}

type Subscript = Expression | (Expression | undefined)[]

function parseSubscribed(stream: TokenStream): Subscript {
  const bounds: (Expression | undefined)[] = []
  if (takeOperator(stream, ':')) bounds.push(undefined)
  else {
    const start = parseExpression(stream)
    if (!takeOperator(stream, ':')) return start
    bounds.push(start)
  }
  bounds.push(parseBound(stream))
  bounds.push(takeOperator(stream, ':') ? parseBound(stream) : undefined)
  return bounds
}

function parseBound(stream: TokenStream): Expression | undefined {
  if (isOperator(stream, ':') || isOperator(stream, ']') || isOperator(stream, ',')) {
    return undefined
  }
  return parseExpression(stream)
}
