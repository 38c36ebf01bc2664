import type { BinaryOperator } from '../operators.ts'
import { Cursor } from './cursor.ts'
import type { Argument, Clause, Expression, FunctionShape, Parameter, TextPart } from './syntax.ts'
import { type RawPart, tokenize } from './tokens.ts'

/** An expression, or several with commas between them, which make a tuple. */
export function parseExpressions(cursor: Cursor): Expression {
  const first = parseItem(cursor)
  if (!cursor.is(',')) return first
  const items = [first]
  while (cursor.accept(',')) {
    if (!beginsExpression(cursor)) break
    items.push(parseItem(cursor))
  }
  return { kind: 'tuple', items }
}

const ENDS = new Set([')', ']', '}', '=', ':', 'in', ''])

function beginsExpression(cursor: Cursor): boolean {
  const { kind } = cursor.token
  if (kind === 'newline' || kind === 'end') return false
  return (
    kind === 'string' ||
    kind === 'fstring' ||
    kind === 'int' ||
    kind === 'float' ||
    !ENDS.has(cursor.text)
  )
}

function parseItem(cursor: Cursor): Expression {
  if (cursor.accept('*')) return { kind: 'starred', value: parseOr(cursor) }
  return parseExpression(cursor)
}

/** One expression. */
export function parseExpression(cursor: Cursor): Expression {
  if (cursor.is('lambda')) return parseLambda(cursor)
  const after = cursor.peek(1)
  if (cursor.isAt('name') && after?.kind === 'operator' && after.text === ':=') {
    const name = cursor.name()
    cursor.expect(':=')
    return { kind: 'named', name, value: parseExpression(cursor) }
  }
  const yes = parseOr(cursor)
  if (!cursor.accept('if')) return yes
  const condition = parseOr(cursor)
  cursor.expect('else')
  return { kind: 'choice', condition, yes, no: parseExpression(cursor) }
}

function parseLambda(cursor: Cursor): Expression {
  cursor.expect('lambda')
  const parameters = parseParameters(cursor, ':')
  cursor.expect(':')
  const shape: FunctionShape = { name: '<lambda>', parameters }
  return { kind: 'lambda', shape, body: parseExpression(cursor) }
}

/** The parameters of a `def` or `lambda`, up to `end`, which is left. */
export function parseParameters(cursor: Cursor, end: ')' | ':'): readonly Parameter[] {
  const parameters: Parameter[] = []
  let kind: Parameter['kind'] = 'plain'
  while (!cursor.is(end)) {
    if (cursor.accept('**')) parameters.push(parseParameter(cursor, 'named-rest', end))
    else if (cursor.accept('*')) {
      kind = 'keyword-only'
      if (!cursor.is(',')) parameters.push(parseParameter(cursor, 'rest', end))
    } else parameters.push(parseParameter(cursor, kind, end))
    if (!cursor.accept(',')) break
  }
  return parameters
}

function parseParameter(cursor: Cursor, kind: Parameter['kind'], end: ')' | ':'): Parameter {
  const name = cursor.name()
  const annotation = end === ')' && cursor.accept(':') ? parseExpression(cursor) : undefined
  const preset = cursor.accept('=') ? parseExpression(cursor) : undefined
  return { name, kind, ...(annotation && { annotation }), ...(preset && { default: preset }) }
}

function parseOr(cursor: Cursor): Expression {
  let left = parseAnd(cursor)
  while (cursor.accept('or')) {
    left = { kind: 'boolean', operator: 'or', left, right: parseAnd(cursor) }
  }
  return left
}

function parseAnd(cursor: Cursor): Expression {
  let left = parseNot(cursor)
  while (cursor.accept('and')) {
    left = { kind: 'boolean', operator: 'and', left, right: parseNot(cursor) }
  }
  return left
}

function parseNot(cursor: Cursor): Expression {
  if (cursor.accept('not')) return { kind: 'unary', operator: 'not', value: parseNot(cursor) }
  return parseComparison(cursor)
}

const COMPARISONS = new Set(['<', '>', '==', '>=', '<=', '!=', 'in', 'is'])

function parseComparison(cursor: Cursor): Expression {
  const first = parseBinary(cursor, 0)
  const rest: (readonly [string, Expression])[] = []
  while (true) {
    const operator = readComparison(cursor)
    if (operator === undefined) break
    rest.push([operator, parseBinary(cursor, 0)])
  }
  return rest.length === 0 ? first : { kind: 'compare', first, rest }
}

function readComparison(cursor: Cursor): string | undefined {
  if (cursor.is('not')) {
    const after = cursor.peek(1)
    if (after?.kind !== 'name' || after.text !== 'in') return undefined
    cursor.next()
    cursor.next()
    return 'not in'
  }
  const { text } = cursor
  if (!COMPARISONS.has(text)) return undefined
  cursor.next()
  if (text === 'is' && cursor.accept('not')) return 'is not'
  return text
}

/** The binary operators, those that bind loosest first. */
const LEVELS: readonly (readonly BinaryOperator[])[] = [
  ['|'],
  ['^'],
  ['&'],
  ['<<', '>>'],
  ['+', '-'],
  ['*', '/', '//', '%'],
]

function parseBinary(cursor: Cursor, level: number): Expression {
  const operators = LEVELS[level]
  if (operators === undefined) return parseUnary(cursor)
  let left = parseBinary(cursor, level + 1)
  for (;;) {
    const operator = operators.find(one => cursor.token.kind === 'operator' && cursor.is(one))
    if (operator === undefined) return left
    cursor.next()
    left = { kind: 'binary', operator, left, right: parseBinary(cursor, level + 1) }
  }
}

function parseUnary(cursor: Cursor): Expression {
  for (const operator of ['-', '+', '~'] as const) {
    if (cursor.accept(operator)) return { kind: 'unary', operator, value: parseUnary(cursor) }
  }
  const base = parsePostfix(cursor)
  if (!cursor.accept('**')) return base
  return { kind: 'binary', operator: '**', left: base, right: parseUnary(cursor) }
}

function parsePostfix(cursor: Cursor): Expression {
  let value = parseAtom(cursor)
  while (true) {
    if (cursor.accept('.')) value = { kind: 'attribute', object: value, name: cursor.name() }
    else if (cursor.accept('(')) {
      value = { kind: 'call', called: value, arguments: parseArguments(cursor) }
    } else if (cursor.accept('[')) {
      value = { kind: 'subscript', object: value, index: parseIndex(cursor) }
    } else return value
  }
}

/** The arguments of a call after its `(`, its `)` included. */
export function parseArguments(cursor: Cursor): readonly Argument[] {
  const given: Argument[] = []
  while (!cursor.accept(')')) {
    given.push(parseArgument(cursor))
    if (!cursor.accept(',')) {
      cursor.expect(')')
      break
    }
  }
  return given
}

function parseArgument(cursor: Cursor): Argument {
  if (cursor.accept('**')) return { spread: '**', value: parseExpression(cursor) }
  if (cursor.accept('*')) return { spread: '*', value: parseExpression(cursor) }
  const after = cursor.peek(1)
  if (cursor.token.kind === 'name' && after?.kind === 'operator' && after.text === '=') {
    const name = cursor.name()
    cursor.expect('=')
    return { name, value: parseExpression(cursor) }
  }
  const value = parseExpression(cursor)
  if (!cursor.is('for')) return { value }
  return {
    value: {
      kind: 'comprehension',
      makes: 'generator',
      item: value,
      clauses: parseClauses(cursor),
    },
  }
}

function parseIndex(cursor: Cursor): Expression {
  const items = [parseSlice(cursor)]
  let isTuple = false
  while (cursor.accept(',')) {
    isTuple = true
    if (cursor.is(']')) break
    items.push(parseSlice(cursor))
  }
  cursor.expect(']')
  return isTuple ? { kind: 'tuple', items } : (items[0] as Expression)
}

function parseSlice(cursor: Cursor): Expression {
  const bound = (): Expression | undefined =>
    cursor.is(':') || cursor.is(']') || cursor.is(',') ? undefined : parseExpression(cursor)
  const from = bound()
  if (!cursor.accept(':')) {
    if (from === undefined) throw cursor.error('expected an index')
    return from
  }
  const to = bound()
  const step = cursor.accept(':') ? bound() : undefined
  return { kind: 'slice', ...(from && { from }), ...(to && { to }), ...(step && { step }) }
}

const CONSTANTS: ReadonlyMap<string, null | boolean> = new Map<string, null | boolean>([
  ['None', null],
  ['True', true],
  ['False', false],
])

function parseAtom(cursor: Cursor): Expression {
  const { token } = cursor
  switch (token.kind) {
    case 'int':
      cursor.next()
      return { kind: 'constant', value: token.value }
    case 'float':
      cursor.next()
      return { kind: 'float', value: token.value }
    case 'string':
    case 'fstring':
      return parseStrings(cursor)
    case 'name': {
      const constant = CONSTANTS.get(token.text)
      cursor.next()
      if (constant !== undefined) return { kind: 'constant', value: constant }
      return { kind: 'name', name: token.text }
    }
    default:
      return parseBracketed(cursor)
  }
}

function parseBracketed(cursor: Cursor): Expression {
  if (cursor.accept('(')) return parseParentheses(cursor)
  if (cursor.accept('[')) return parseItems(cursor, ']', 'list')
  if (cursor.accept('{')) return parseBraces(cursor)
  if (cursor.accept('...')) return { kind: 'ellipsis' }
  throw cursor.error('expected an expression')
}

function parseParentheses(cursor: Cursor): Expression {
  if (cursor.accept(')')) return { kind: 'tuple', items: [] }
  const first = parseItem(cursor)
  if (cursor.is('for')) {
    const clauses = parseClauses(cursor)
    cursor.expect(')')
    return { kind: 'comprehension', makes: 'generator', item: first, clauses }
  }
  if (cursor.accept(')')) return first
  const items = [first]
  while (cursor.accept(',')) {
    if (cursor.is(')')) break
    items.push(parseItem(cursor))
  }
  cursor.expect(')')
  return { kind: 'tuple', items }
}

function parseItems(
  cursor: Cursor,
  end: ']' | '}',
  makes: 'list' | 'set',
  first?: Expression,
): Expression {
  const items: Expression[] = first ? [first] : []
  if (first) cursor.accept(',')
  while (!cursor.accept(end)) {
    items.push(parseItem(cursor))
    if (items.length === 1 && cursor.is('for')) {
      const clauses = parseClauses(cursor)
      cursor.expect(end)
      return { kind: 'comprehension', makes, item: items[0] as Expression, clauses }
    }
    if (!cursor.accept(',')) {
      cursor.expect(end)
      break
    }
  }
  return { kind: makes, items }
}

function parseBraces(cursor: Cursor): Expression {
  if (cursor.accept('}')) return { kind: 'dict', pairs: [] }
  if (cursor.is('**')) return parsePairs(cursor, [])
  const first = parseItem(cursor)
  if (cursor.accept(':')) {
    const value = parseExpression(cursor)
    if (cursor.is('for')) {
      const clauses = parseClauses(cursor)
      cursor.expect('}')
      return { kind: 'comprehension', makes: 'dict', item: first, value, clauses }
    }
    cursor.accept(',')
    return parsePairs(cursor, [[first, value]])
  }
  if (cursor.is('for')) {
    const clauses = parseClauses(cursor)
    cursor.expect('}')
    return { kind: 'comprehension', makes: 'set', item: first, clauses }
  }
  return parseItems(cursor, '}', 'set', first)
}

function parsePairs(
  cursor: Cursor,
  pairs: (readonly [Expression | null, Expression])[],
): Expression {
  while (!cursor.accept('}')) {
    if (cursor.accept('**')) pairs.push([null, parseExpression(cursor)])
    else {
      const key = parseExpression(cursor)
      cursor.expect(':')
      pairs.push([key, parseExpression(cursor)])
    }
    if (!cursor.accept(',')) {
      cursor.expect('}')
      break
    }
  }
  return { kind: 'dict', pairs }
}

function parseClauses(cursor: Cursor): readonly Clause[] {
  const clauses: Clause[] = []
  while (cursor.accept('for')) {
    const target = parseTarget(cursor)
    cursor.expect('in')
    const source = parseOr(cursor)
    const conditions: Expression[] = []
    while (cursor.accept('if')) conditions.push(parseOr(cursor))
    clauses.push({ target, source, conditions })
  }
  return clauses
}

/** What a `for` assigns to. */
export function parseTarget(cursor: Cursor): Expression {
  const first = parsePostfix(cursor)
  if (!cursor.is(',')) return first
  const items = [first]
  while (cursor.accept(',')) {
    if (cursor.is('in')) break
    items.push(parsePostfix(cursor))
  }
  return { kind: 'tuple', items }
}

/** Strings that stand side by side are one. */
function parseStrings(cursor: Cursor): Expression {
  const parts: TextPart[] = []
  while (true) {
    const { token } = cursor
    if (token.kind === 'string') parts.push(token.value)
    else if (token.kind === 'fstring') parts.push(...token.parts.map(readPart))
    else break
    cursor.next()
  }
  if (parts.every(part => typeof part === 'string')) {
    return { kind: 'constant', value: parts.join('') }
  }
  return { kind: 'text', parts }
}

function readPart(part: RawPart): TextPart {
  if (typeof part === 'string') return part
  const { source, format, conversion, line } = part
  const cursor = new Cursor(tokenize(`(${source})`, line))
  const value = parseExpression(cursor)
  return { value, format: format.map(readPart), ...(conversion && { conversion }) }
}
