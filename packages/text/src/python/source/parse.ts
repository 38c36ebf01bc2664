import type { BinaryOperator } from '../operators.ts'
import { Cursor } from './cursor.ts'
import {
  parseArguments,
  parseExpression,
  parseExpressions,
  parseParameters,
  parseTarget,
} from './parse-expression.ts'
import type { Argument, Block, Expression, Handler, Statement } from './syntax.ts'
import { tokenize } from './tokens.ts'

/** Reads the source of a module. */
export function parseModule(source: string): Block {
  const cursor = new Cursor(tokenize(source))
  const statements: Statement[] = []
  while (cursor.token.kind !== 'end') statements.push(...parseStatement(cursor))
  return statements
}

type Parse = (cursor: Cursor) => Statement

const COMPOUND: ReadonlyMap<string, Parse> = new Map<string, Parse>([
  ['if', parseIf],
  ['for', parseFor],
  ['while', parseWhile],
  ['try', parseTry],
  ['with', parseWith],
  ['def', cursor => parseFunction(cursor, [])],
  ['class', cursor => parseClass(cursor, [])],
  ['@', parseDecorated],
])

function parseStatement(cursor: Cursor): readonly Statement[] {
  const compound = COMPOUND.get(cursor.text)
  if (compound) return [compound(cursor)]
  const statements = [parseSimple(cursor)]
  while (cursor.accept(';')) {
    if (cursor.token.kind !== 'newline') statements.push(parseSimple(cursor))
  }
  cursor.layout('newline')
  return statements
}

function parseBlock(cursor: Cursor): Block {
  cursor.expect(':')
  if (cursor.token.kind !== 'newline') return parseStatement(cursor)
  cursor.layout('newline')
  cursor.layout('indent')
  const statements: Statement[] = []
  while (!cursor.isAt('dedent')) statements.push(...parseStatement(cursor))
  cursor.layout('dedent')
  return statements
}

function parseIf(cursor: Cursor): Statement {
  cursor.next()
  const condition = parseExpression(cursor)
  const yes = parseBlock(cursor)
  if (cursor.is('elif')) return { kind: 'if', condition, yes, no: [parseIf(cursor)] }
  return { kind: 'if', condition, yes, no: parseElse(cursor) }
}

function parseElse(cursor: Cursor): Block {
  return cursor.accept('else') ? parseBlock(cursor) : []
}

function parseFor(cursor: Cursor): Statement {
  cursor.expect('for')
  const target = parseTarget(cursor)
  cursor.expect('in')
  const source = parseExpressions(cursor)
  const body = parseBlock(cursor)
  return { kind: 'for', target, source, body, otherwise: parseElse(cursor) }
}

function parseWhile(cursor: Cursor): Statement {
  cursor.expect('while')
  return { kind: 'while', condition: parseExpression(cursor), body: parseBlock(cursor) }
}

function parseTry(cursor: Cursor): Statement {
  cursor.expect('try')
  const body = parseBlock(cursor)
  const handlers: Handler[] = []
  while (cursor.accept('except')) {
    const type = cursor.is(':') ? undefined : parseExpression(cursor)
    const name = cursor.accept('as') ? cursor.name() : undefined
    handlers.push({ ...(type && { type }), ...(name && { name }), body: parseBlock(cursor) })
  }
  const otherwise = parseElse(cursor)
  const last = cursor.accept('finally') ? parseBlock(cursor) : []
  return { kind: 'try', body, handlers, otherwise, finally: last }
}

function parseWith(cursor: Cursor): Statement {
  cursor.expect('with')
  const items: (readonly [Expression, Expression | undefined])[] = []
  do {
    const value = parseExpression(cursor)
    items.push([value, cursor.accept('as') ? parseTarget(cursor) : undefined])
  } while (cursor.accept(','))
  return { kind: 'with', items, body: parseBlock(cursor) }
}

function parseDecorated(cursor: Cursor): Statement {
  const decorators: Expression[] = []
  while (cursor.accept('@')) {
    decorators.push(parseExpression(cursor))
    cursor.layout('newline')
  }
  return cursor.is('class') ? parseClass(cursor, decorators) : parseFunction(cursor, decorators)
}

function parseFunction(cursor: Cursor, decorators: readonly Expression[]): Statement {
  cursor.expect('def')
  const name = cursor.name()
  cursor.expect('(')
  const parameters = parseParameters(cursor, ')')
  cursor.expect(')')
  const returns = cursor.accept('->') ? parseExpression(cursor) : undefined
  const body = parseBlock(cursor)
  return {
    kind: 'function',
    shape: { name, parameters },
    decorators,
    body,
    ...(returns && { returns }),
  }
}

function parseClass(cursor: Cursor, decorators: readonly Expression[]): Statement {
  cursor.expect('class')
  const name = cursor.name()
  const bases: readonly Argument[] = cursor.accept('(') ? parseArguments(cursor) : []
  return { kind: 'class', name, bases, decorators, body: parseBlock(cursor) }
}

const SIMPLE: ReadonlyMap<string, Parse> = new Map<string, Parse>([
  ['return', parseReturn],
  ['raise', parseRaise],
  ['assert', parseAssert],
  ['del', parseDelete],
  ['import', parseImport],
  ['from', parseImportFrom],
  ['pass', cursor => word(cursor, 'pass')],
  ['break', cursor => word(cursor, 'break')],
  ['continue', cursor => word(cursor, 'continue')],
])

function word(cursor: Cursor, kind: 'pass' | 'break' | 'continue'): Statement {
  cursor.next()
  return { kind }
}

function parseSimple(cursor: Cursor): Statement {
  const simple = cursor.token.kind === 'name' ? SIMPLE.get(cursor.text) : undefined
  return simple ? simple(cursor) : parseAssignment(cursor)
}

function parseReturn(cursor: Cursor): Statement {
  cursor.next()
  if (isLineEnd(cursor)) return { kind: 'return' }
  return { kind: 'return', value: parseExpressions(cursor) }
}

function parseRaise(cursor: Cursor): Statement {
  cursor.next()
  if (isLineEnd(cursor)) return { kind: 'raise' }
  const value = parseExpression(cursor)
  if (cursor.accept('from')) parseExpression(cursor)
  return { kind: 'raise', value }
}

const isLineEnd = (cursor: Cursor): boolean => cursor.token.kind === 'newline' || cursor.is(';')

function parseAssert(cursor: Cursor): Statement {
  cursor.next()
  const condition = parseExpression(cursor)
  const message = cursor.accept(',') ? parseExpression(cursor) : undefined
  return { kind: 'assert', condition, ...(message && { message }) }
}

function parseDelete(cursor: Cursor): Statement {
  cursor.next()
  const value = parseExpressions(cursor)
  return { kind: 'delete', targets: value.kind === 'tuple' ? value.items : [value] }
}

function parseImport(cursor: Cursor): Statement {
  cursor.next()
  const module = dottedName(cursor)
  const as = cursor.accept('as') ? cursor.name() : (module.split('.')[0] as string)
  return { kind: 'import', module, as }
}

function dottedName(cursor: Cursor): string {
  let name = cursor.name()
  while (cursor.accept('.')) name += `.${cursor.name()}`
  return name
}

function parseImportFrom(cursor: Cursor): Statement {
  cursor.next()
  let level = 0
  while (cursor.is('.') || cursor.is('...'))
    level += cursor.accept('...') ? 3 : Number(cursor.accept('.'))
  const module = cursor.is('import') ? '' : dottedName(cursor)
  cursor.expect('import')
  const isOpen = cursor.accept('(')
  const names: (readonly [string, string])[] = []
  do {
    if (cursor.is(')')) break
    const name = cursor.name()
    names.push([name, cursor.accept('as') ? cursor.name() : name])
  } while (cursor.accept(','))
  if (isOpen) cursor.expect(')')
  return { kind: 'import-from', module, level, names }
}

const AUGMENTED: ReadonlyMap<string, BinaryOperator> = new Map(
  (['+', '-', '*', '/', '//', '%', '**', '|', '&', '^', '<<', '>>'] as const).map(
    operator => [`${operator}=`, operator] as const,
  ),
)

function parseAssignment(cursor: Cursor): Statement {
  const first = parseExpressions(cursor)
  if (cursor.accept(':')) {
    const annotation = parseExpression(cursor)
    const value = cursor.accept('=') ? parseExpressions(cursor) : undefined
    return { kind: 'annotate', target: first, annotation, ...(value && { value }) }
  }
  const operator = AUGMENTED.get(cursor.text)
  if (operator !== undefined) {
    cursor.next()
    return { kind: 'augment', target: first, operator, value: parseExpressions(cursor) }
  }
  if (!cursor.is('=')) return { kind: 'expression', value: first }
  const chain = [first]
  while (cursor.accept('=')) chain.push(parseExpressions(cursor))
  const value = chain.pop() as Expression
  return { kind: 'assign', targets: chain, value }
}
