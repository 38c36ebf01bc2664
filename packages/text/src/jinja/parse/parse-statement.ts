import { parseFilterCall } from './parse-call.ts'
import { isTupleEnd, parseExpression, parsePrimary, parseTuple } from './parse-expression.ts'
import type { Branch, Expression, Parameter, Statement, Target } from './syntax.ts'
import type { TokenStream } from './tokens.ts'
import {
  advance,
  current,
  deeper,
  describe,
  expect,
  expectName,
  fail,
  following,
  isName,
  isOperator,
  takeName,
  takeOperator,
} from './tokens.ts'

/** Reads a whole template. */
export function parseTemplate(stream: TokenStream): Statement[] {
  const body = parseBody(stream, [])
  if (current(stream).kind !== 'end') fail(stream, `unexpected '${describe(current(stream))}'`)
  return body
}

/** Reads statements up to a tag that begins with one of these names, which stays unread. */
function parseBody(stream: TokenStream, endings: readonly string[]): Statement[] {
  const body: Statement[] = []
  while (true) {
    const token = advance(stream)
    const { at } = token
    if (token.kind === 'data') body.push({ kind: 'data', at, text: token.value })
    else if (token.kind === 'print-begin') {
      body.push({ kind: 'print', at, value: parseTuple(stream, { conditional: true }) })
      expect(stream, 'print-end')
    } else if (token.kind === 'block-begin') {
      if (endings.some(name => isName(current(stream), name))) return body
      body.push(...deeper(stream, () => parseStatement(stream, endings)))
      expect(stream, 'block-end')
    } else if (token.kind === 'end') {
      if (endings.length > 0) fail(stream, unclosed(endings))
      return body
    } else fail(stream, `unexpected '${describe(token)}'`, token)
  }
}

const unclosed = (endings: readonly string[]): string =>
  `Unexpected end of template. Jinja was looking for the following tags: ${endings.map(name => `'${name}'`).join(' or ')}.`

/** Reads the rest of an opening tag and the body behind it, up to one of the endings. */
function parseBlock(stream: TokenStream, ...endings: string[]): Statement[] {
  takeOperator(stream, ':')
  expect(stream, 'block-end')
  return parseBody(stream, endings)
}

/** Like `parseBlock`, for a single ending, which is taken too. */
function parseClosed(stream: TokenStream, ending: string): Statement[] {
  const body = parseBlock(stream, ending)
  advance(stream)
  return body
}

type StatementParser = (stream: TokenStream, at: number) => Statement | Statement[]

function parseStatement(stream: TokenStream, endings: readonly string[]): Statement[] {
  const token = current(stream)
  if (token.kind !== 'name') fail(stream, 'tag name expected')
  const parse = STATEMENTS.get(token.value as string)
  if (!parse) {
    const looking = endings.map(name => `'${name}'`).join(' or ')
    const hint = looking && ` Jinja was looking for the following tags: ${looking}.`
    return fail(stream, `Encountered unknown tag '${token.value}'.${hint}`)
  }
  advance(stream)
  const statement = parse(stream, token.at)
  return Array.isArray(statement) ? statement : [statement]
}

const parseFor: StatementParser = (stream, at) => {
  const target = parseTargets(stream, { until: 'in' })
  expect(stream, 'name', 'in')
  const iterable = parseTuple(stream, { conditional: false, until: 'recursive' })
  const test = takeName(stream, 'if') ? parseExpression(stream) : undefined
  const recursive = takeName(stream, 'recursive')
  const body = parseBlock(stream, 'endfor', 'else')
  const otherwise = isName(advance(stream), 'else') ? parseClosed(stream, 'endfor') : []
  return { kind: 'for', at, target, iterable, test, recursive, body, otherwise }
}

const parseIf: StatementParser = (stream, at) => {
  const branches: Branch[] = []
  while (true) {
    const test = parseTuple(stream, { conditional: false })
    branches.push({ test, body: parseBlock(stream, 'elif', 'else', 'endif') })
    const ending = advance(stream)
    if (isName(ending, 'elif')) continue
    const otherwise = isName(ending, 'else') ? parseClosed(stream, 'endif') : []
    return { kind: 'if', at, branches, otherwise }
  }
}

const parseSet: StatementParser = (stream, at) => {
  const target = parseTargets(stream, { namespace: true })
  if (takeOperator(stream, '=')) {
    return { kind: 'set', at, target, value: parseTuple(stream, { conditional: true }) }
  }
  let filter: Expression | undefined
  while (takeOperator(stream, '|')) filter = parseFilterCall(stream, filter)
  return { kind: 'set-block', at, target, filter, body: parseClosed(stream, 'endset') }
}

interface TargetOptions {
  readonly until?: string
  readonly namespace?: boolean
}

function parseTargets(stream: TokenStream, options: TargetOptions): Target {
  const { at } = current(stream)
  const items: Target[] = []
  let comma = false
  while (!isTupleEnd(stream, options.until)) {
    items.push(parseTarget(stream, options.namespace === true))
    if (!takeOperator(stream, ',')) break
    comma = true
  }
  if (comma) return { kind: 'tuple', at, items }
  return items[0] ?? fail(stream, `Expected an expression, got '${describe(current(stream))}'`)
}

function parseTarget(stream: TokenStream, namespace: boolean): Target {
  const token = current(stream)
  const next = following(stream)
  if (namespace && token.kind === 'name' && next.kind === 'operator' && next.value === '.') {
    const name = expectName(stream)
    advance(stream)
    return { kind: 'namespace', at: token.at, name, attribute: expectName(stream) }
  }
  return toTarget(stream, parsePrimary(stream))
}

function toTarget(stream: TokenStream, value: Expression): Target {
  if (value.kind === 'name') return value
  if (value.kind === 'tuple') {
    return { ...value, kind: 'tuple', items: value.items.map(item => toTarget(stream, item)) }
  }
  return fail(stream, `can't assign to '${value.kind}'`)
}

function parseSignature(stream: TokenStream): Parameter[] {
  const parameters: Parameter[] = []
  expect(stream, 'operator', '(')
  while (!isOperator(stream, ')')) {
    if (parameters.length > 0) expect(stream, 'operator', ',')
    const name = expectName(stream)
    const value = takeOperator(stream, '=') ? parseExpression(stream) : undefined
    if (value === undefined && parameters.at(-1)?.default) {
      fail(stream, 'non-default argument follows default argument')
    }
    if (parameters.some(each => each.name === name)) fail(stream, `two arguments called '${name}'`)
    parameters.push({ name, default: value })
  }
  expect(stream, 'operator', ')')
  return parameters
}

const parseMacro: StatementParser = (stream, at) => {
  const name = expectName(stream)
  const parameters = parseSignature(stream)
  return { kind: 'macro', at, name, parameters, body: parseClosed(stream, 'endmacro') }
}

const parseCallBlock: StatementParser = (stream, at) => {
  const parameters = isOperator(stream, '(') ? parseSignature(stream) : []
  const call = parseExpression(stream)
  if (call.kind !== 'call') fail(stream, 'expected call')
  return { kind: 'call-block', at, call, parameters, body: parseClosed(stream, 'endcall') }
}

const parseFilterBlock: StatementParser = (stream, at) => {
  let filter = parseFilterCall(stream, undefined)
  while (takeOperator(stream, '|')) filter = parseFilterCall(stream, filter)
  return { kind: 'filter-block', at, filter, body: parseClosed(stream, 'endfilter') }
}

const parseWith: StatementParser = (stream, at) => {
  const targets: Target[] = []
  const values: Expression[] = []
  while (current(stream).kind !== 'block-end') {
    if (targets.length > 0) expect(stream, 'operator', ',')
    targets.push(parseTargets(stream, {}))
    expect(stream, 'operator', '=')
    values.push(parseExpression(stream))
  }
  return { kind: 'with', at, targets, values, body: parseClosed(stream, 'endwith') }
}

const parsePrint: StatementParser = (stream, at) => {
  const values: Statement[] = []
  while (current(stream).kind !== 'block-end') {
    if (values.length > 0) expect(stream, 'operator', ',')
    values.push({ kind: 'print', at, value: parseExpression(stream) })
  }
  return values
}

const parseAutoescape: StatementParser = (stream, at) => {
  const value = parseExpression(stream)
  if (value.kind !== 'constant' || value.value !== false) {
    fail(stream, 'autoescape can only be switched off here: chat templates are not HTML')
  }
  return { kind: 'scope', at, body: parseClosed(stream, 'endautoescape') }
}

const parseNamedBlock: StatementParser = (stream, at) => {
  const name = expectName(stream)
  takeName(stream, 'scoped')
  if (takeName(stream, 'required'))
    fail(stream, 'a required block needs a template that extends it')
  const body = parseClosed(stream, 'endblock')
  takeName(stream, name)
  return { kind: 'block', at, name, body }
}

/** Tags that load other templates; transformers gives its templates no loader, so using one raises. */
const parseLoad =
  (tag: string): StatementParser =>
  (stream, at) => {
    parseExpression(stream)
    const stores: string[] = []
    while (current(stream).kind !== 'block-end' && current(stream).kind !== 'end') {
      const token = advance(stream)
      if (token.kind === 'name' && token.value === 'as') stores.push(expectName(stream))
    }
    return { kind: 'load', at, tag, stores }
  }

const STATEMENTS: ReadonlyMap<string, StatementParser> = new Map<string, StatementParser>([
  ['for', parseFor],
  ['if', parseIf],
  ['set', parseSet],
  ['macro', parseMacro],
  ['call', parseCallBlock],
  ['filter', parseFilterBlock],
  ['with', parseWith],
  ['print', parsePrint],
  ['autoescape', parseAutoescape],
  ['block', parseNamedBlock],
  ['break', (_, at) => ({ kind: 'break', at })],
  ['continue', (_, at) => ({ kind: 'continue', at })],
  [
    'generation',
    (stream, at) => ({ kind: 'generation', at, body: parseClosed(stream, 'endgeneration') }),
  ],
  ['include', parseLoad('include')],
  ['import', parseLoad('import')],
  ['from', parseLoad('from')],
  ['extends', parseLoad('extends')],
])
