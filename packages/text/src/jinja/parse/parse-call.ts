import { parseExpression, parseItems, parsePostfix, parsePrimary } from './parse-expression.ts'
import type { CallArguments, Expression } from './syntax.ts'
import type { TokenStream } from './tokens.ts'
import {
  advance,
  current,
  expect,
  expectName,
  fail,
  following,
  isName,
  isOperator,
  takeName,
  takeOperator,
} from './tokens.ts'

interface OpenArguments {
  readonly positional: Expression[]
  readonly named: { name: string; value: Expression }[]
  unpacked: Expression | undefined
  unpackedNamed: Expression | undefined
}

/** Reads the arguments of a call, parentheses included. */
export function parseArguments(stream: TokenStream): CallArguments {
  expect(stream, 'operator', '(')
  const input: OpenArguments = {
    positional: [],
    named: [],
    unpacked: undefined,
    unpackedNamed: undefined,
  }
  parseItems(stream, ')', () => parseArgument(stream, input))
  return input
}

function parseArgument(stream: TokenStream, input: OpenArguments): void {
  const ensure = (valid: boolean): void => {
    if (!valid) fail(stream, 'invalid syntax for function call expression')
  }
  if (takeOperator(stream, '*')) {
    ensure(input.unpacked === undefined && input.unpackedNamed === undefined)
    input.unpacked = parseExpression(stream)
    return
  }
  if (takeOperator(stream, '**')) {
    ensure(input.unpackedNamed === undefined)
    input.unpackedNamed = parseExpression(stream)
    return
  }
  const next = following(stream)
  if (current(stream).kind === 'name' && next.kind === 'operator' && next.value === '=') {
    ensure(input.unpackedNamed === undefined)
    const name = expectName(stream)
    ensure(input.named.every(each => each.name !== name))
    advance(stream)
    input.named.push({ name, value: parseExpression(stream) })
    return
  }
  ensure(
    input.unpacked === undefined && input.unpackedNamed === undefined && input.named.length === 0,
  )
  input.positional.push(parseExpression(stream))
}

/** No arguments at all. */
const NO_ARGUMENTS: CallArguments = {
  positional: [],
  named: [],
  unpacked: undefined,
  unpackedNamed: undefined,
}

function parseDottedName(stream: TokenStream): string {
  let name = expectName(stream)
  while (takeOperator(stream, '.')) name += `.${expectName(stream)}`
  return name
}

/** Reads one filter, from its name on. */
export function parseFilterCall(stream: TokenStream, value: Expression | undefined): Expression {
  const { at } = current(stream)
  const name = parseDottedName(stream)
  const input = isOperator(stream, '(') ? parseArguments(stream) : NO_ARGUMENTS
  return { kind: 'filter', at, value, name, input }
}

/** Reads a filter behind a value, from the bar on. */
export function parseFilter(stream: TokenStream, value: Expression): Expression {
  advance(stream)
  return parseFilterCall(stream, value)
}

const TEST_ARGUMENT = new Set(['name', 'string', 'number'])

/** Reads a test behind a value, from `is` on. */
export function parseTest(stream: TokenStream, value: Expression): Expression {
  const { at } = advance(stream)
  const negated = takeName(stream, 'not')
  const name = parseDottedName(stream)
  let input = NO_ARGUMENTS
  if (isOperator(stream, '(')) input = parseArguments(stream)
  else if (startsTestArgument(stream)) {
    if (isName(current(stream), 'is')) fail(stream, 'You cannot chain multiple tests with is')
    input = { ...NO_ARGUMENTS, positional: [parsePostfix(stream, parsePrimary(stream))] }
  }
  const test: Expression = { kind: 'test', at, value, name, input }
  return negated ? { kind: 'unary', at, operator: 'not', value: test } : test
}

function startsTestArgument(stream: TokenStream): boolean {
  const token = current(stream)
  if (token.kind === 'operator') return token.value === '[' || token.value === '{'
  if (!TEST_ARGUMENT.has(token.kind)) return false
  return !['else', 'or', 'and'].some(word => isName(token, word))
}
