import type { CallArguments, Expression, Statement, Target } from '../parse/syntax.ts'
import type { Symbols } from './scope.ts'
import { copySymbols, declare, joinBranches, load, store } from './scope.ts'

const argumentsOf = (input: CallArguments): (Expression | undefined)[] => [
  ...input.positional,
  ...input.named.map(each => each.value),
  input.unpacked,
  input.unpackedNamed,
]

/** The expressions directly inside an expression. */
function childrenOf(expression: Expression): readonly (Expression | undefined)[] {
  switch (expression.kind) {
    case 'constant':
    case 'name':
      return []
    case 'tuple':
    case 'list':
      return expression.items
    case 'dict':
      return expression.pairs.flat()
    case 'attribute':
      return [expression.object]
    case 'item':
      return [expression.object, expression.key]
    case 'slice':
      return [expression.object, ...expression.bounds]
    case 'call':
      return [expression.callee, ...argumentsOf(expression.input)]
    case 'filter':
    case 'test':
      return [expression.value, ...argumentsOf(expression.input)]
    case 'unary':
      return [expression.value]
    case 'arithmetic':
    case 'and':
    case 'or':
      return [expression.left, expression.right]
    case 'comparison':
      return [expression.left, ...expression.chain.map(each => each.value)]
    case 'concatenation':
      return expression.parts
    case 'conditional':
      return [expression.test, expression.then, expression.otherwise]
  }
}

/** Notes the names an expression reads. */
export function visitExpression(symbols: Symbols, expression: Expression | undefined): void {
  if (!expression) return
  if (expression.kind === 'name') load(symbols, expression.name)
  else for (const child of childrenOf(expression)) visitExpression(symbols, child)
}

/** Notes the names an assignment sets; `given` ones are set before the scope begins. */
export function visitTarget(symbols: Symbols, target: Target, given = false): void {
  if (target.kind === 'tuple') for (const item of target.items) visitTarget(symbols, item, given)
  else if (target.kind === 'namespace') load(symbols, target.name)
  else if (given) declare(symbols, target.name)
  else store(symbols, target.name)
}

/** Notes the names that statements read and set in a scope; scopes inside them are left out. */
export function visitStatements(symbols: Symbols, statements: readonly Statement[]): void {
  for (const statement of statements) visitStatement(symbols, statement)
}

function visitStatement(symbols: Symbols, statement: Statement): void {
  switch (statement.kind) {
    case 'print':
      visitExpression(symbols, statement.value)
      break
    case 'for':
      visitExpression(symbols, statement.iterable)
      break
    case 'if':
      visitIf(symbols, statement)
      break
    case 'set':
      visitExpression(symbols, statement.value)
      visitTarget(symbols, statement.target)
      break
    case 'set-block':
      visitTarget(symbols, statement.target)
      break
    case 'macro':
      store(symbols, statement.name)
      break
    case 'call-block':
      visitExpression(symbols, statement.call)
      break
    case 'filter-block':
      visitExpression(symbols, statement.filter)
      break
    case 'with':
      for (const value of statement.values) visitExpression(symbols, value)
      break
    case 'load':
      for (const name of statement.stores) store(symbols, name)
  }
}

function visitIf(symbols: Symbols, statement: Extract<Statement, { kind: 'if' }>): void {
  const [first, ...others] = statement.branches
  visitExpression(symbols, first?.test)
  const body = copySymbols(symbols)
  visitStatements(body, first?.body ?? [])
  const between = copySymbols(symbols)
  for (const branch of others) {
    visitIf(between, { ...statement, branches: [branch], otherwise: [] })
  }
  const otherwise = copySymbols(symbols)
  visitStatements(otherwise, statement.otherwise)
  joinBranches(symbols, [body, between, otherwise])
}

/** Whether statements read a name before anything in them sets it, at any depth. */
export function readsName(statements: readonly Statement[], name: string): boolean {
  return search(statements, name) === 'read'
}

type Found = 'read' | 'set' | undefined

function search(statements: readonly Statement[], name: string): Found {
  return firstFound(statements, statement => searchStatement(statement, name))
}

function firstFound<T>(items: Iterable<T>, look: (item: T) => Found): Found {
  for (const item of items) {
    const found = look(item)
    if (found) return found
  }
  return undefined
}

function searchExpression(expression: Expression | undefined, name: string): Found {
  if (!expression) return undefined
  if (expression.kind === 'name') return expression.name === name ? 'read' : undefined
  return firstFound(childrenOf(expression), child => searchExpression(child, name))
}

function searchTarget(target: Target, name: string): Found {
  if (target.kind === 'tuple') return firstFound(target.items, item => searchTarget(item, name))
  return target.kind === 'name' && target.name === name ? 'set' : undefined
}

// in the order in which Jinja's nodes list their children
function searchStatement(statement: Statement, name: string): Found {
  const inside = (expression: Expression | undefined): Found => searchExpression(expression, name)
  switch (statement.kind) {
    case 'print':
      return inside(statement.value)
    case 'for':
      return (
        searchTarget(statement.target, name) ??
        inside(statement.iterable) ??
        search(statement.body, name) ??
        search(statement.otherwise, name) ??
        inside(statement.test)
      )
    case 'if':
      return (
        firstFound(statement.branches, each => inside(each.test) ?? search(each.body, name)) ??
        search(statement.otherwise, name)
      )
    case 'set':
      return searchTarget(statement.target, name) ?? inside(statement.value)
    case 'set-block':
      return (
        searchTarget(statement.target, name) ??
        inside(statement.filter) ??
        search(statement.body, name)
      )
    case 'filter-block':
      return search(statement.body, name) ?? inside(statement.filter)
    default:
      return searchNested(statement, name)
  }
}

function searchNested(statement: Statement, name: string): Found {
  switch (statement.kind) {
    case 'macro':
    case 'call-block': {
      const call = statement.kind === 'call-block' ? statement.call : undefined
      return (
        searchExpression(call, name) ??
        (statement.parameters.some(each => each.name === name) ? 'set' : undefined) ??
        firstFound(statement.parameters, each => searchExpression(each.default, name)) ??
        search(statement.body, name)
      )
    }
    case 'with':
      return (
        firstFound(statement.targets, each => searchTarget(each, name)) ??
        firstFound(statement.values, each => searchExpression(each, name)) ??
        search(statement.body, name)
      )
    case 'generation':
    case 'scope':
      return search(statement.body, name)
    default:
      return undefined
  }
}

const targetSets = (target: Target, name: string): boolean =>
  target.kind === 'tuple'
    ? target.items.some(item => targetSets(item, name))
    : target.kind === 'name' && target.name === name

/** Whether any statement, at any depth, assigns to a name. */
export function setsName(statements: readonly Statement[], name: string): boolean {
  return statements.some(statement => {
    if (statement.kind === 'if') {
      const bodies = statement.branches.map(branch => branch.body)
      return [...bodies, statement.otherwise].some(body => setsName(body, name))
    }
    if ('target' in statement && targetSets(statement.target, name)) return true
    if (statement.kind === 'for' && setsName(statement.otherwise, name)) return true
    return 'body' in statement && setsName(statement.body, name)
  })
}
