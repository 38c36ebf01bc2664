import type { Expression, TextPart } from '@espalier/text/python'
import { applySign, encodeAsciiRepr, PythonFloat, SourceError } from '@espalier/text/python'
import { attributeOf, superAttribute } from '../attributes.ts'
import { format } from '../format.ts'
import { itemOf, setItem, sliceOf } from '../items.ts'
import {
  isEqual,
  isIn,
  isOrdered,
  isSame,
  isTrue,
  iterate,
  operate,
  requireKey,
} from '../operators.ts'
import { RUNTIME } from '../runtime.ts'
import { repr, str } from '../show.ts'
import {
  type Dict,
  ELLIPSIS,
  orElse,
  type ProgramClass,
  PythonError,
  PythonSet,
  PythonTuple,
  type Value,
} from '../values.ts'
import { compileCall } from './call.ts'
import { compileComprehension } from './comprehension.ts'
import { compileLambda } from './function.ts'
import type { Frame, Scope } from './scope.ts'
import { assignToName } from './target.ts'

/** An expression ready to be evaluated. */
export type Evaluate = (frame: Frame) => Value

/** Turns an expression into a function that evaluates it. */
export function compileExpression(expression: Expression, scope: Scope): Evaluate {
  const each = (inner: Expression): Evaluate => compileExpression(inner, scope)
  switch (expression.kind) {
    case 'constant': {
      const { value } = expression
      return () => value
    }
    case 'float': {
      const value = new PythonFloat(expression.value)
      return () => value
    }
    case 'ellipsis':
      return () => ELLIPSIS
    case 'text':
      return compileText(expression.parts, scope)
    case 'name':
      return compileName(expression.name, scope)
    case 'attribute':
      return compileAttribute(expression.object, expression.name, scope)
    case 'subscript':
      return compileSubscript(expression, scope)
    case 'call':
      return compileCall(expression, scope)
    case 'list':
    case 'tuple':
    case 'set':
      return compileItems(expression, scope)
    case 'dict':
      return compileDict(expression.pairs, scope)
    case 'unary':
      return compileUnary(expression.operator, each(expression.value))
    case 'binary': {
      const [left, right, { operator }] = [
        each(expression.left),
        each(expression.right),
        expression,
      ]
      return frame => operate(operator, left(frame), right(frame))
    }
    case 'boolean':
      return compileBoolean(expression.operator, each(expression.left), each(expression.right))
    case 'compare':
      return compileComparison(expression, scope)
    case 'choice': {
      const [condition, yes, no] = [
        each(expression.condition),
        each(expression.yes),
        each(expression.no),
      ]
      return frame => (isTrue(condition(frame)) ? yes(frame) : no(frame))
    }
    case 'named':
      return compileNamed(expression, scope)
    case 'lambda':
      return compileLambda(expression, scope)
    case 'comprehension':
      return compileComprehension(expression, scope)
    default:
      throw new SourceError(`A ${expression.kind} cannot stand here`)
  }
}

function compileName(name: string, scope: Scope): Evaluate {
  const { module } = scope
  const global: Evaluate = () => globalOf(module.scope, name)
  if (scope.places === undefined) {
    return frame => {
      const value = frame.names?.get(name)
      return value === undefined ? globalOf(module.scope, name) : value
    }
  }
  let depth = 0
  for (let one: Scope | undefined = scope; one; one = one.parent) {
    const place = one.places?.get(name)
    if (place !== undefined) return compileLocal(name, depth, place)
    depth++
  }
  return global
}

function compileLocal(name: string, depth: number, place: number): Evaluate {
  if (depth === 0) {
    return frame => {
      const value = frame.slots[place]
      return value === undefined ? unbound(name) : value
    }
  }
  return frame => {
    let one = frame
    for (let up = depth; up > 0; up--) one = one.parent as Frame
    const value = one.slots[place]
    return value === undefined ? unbound(name) : value
  }
}

/** `name := value`, which assigns in the nearest function, class or module around. */
function compileNamed(
  { name, value }: Extract<Expression, { kind: 'named' }>,
  scope: Scope,
): Evaluate {
  const given = compileExpression(value, scope)
  let depth = 0
  let around: Scope | undefined = scope
  while (around?.places && !around.places.has(name)) {
    around = around.parent
    depth++
  }
  if (around === undefined) throw new SourceError(`Nothing can be assigned to ${name} here`)
  const assign = assignToName(name, around)
  return frame => {
    let one = frame
    for (let up = depth; up > 0; up--) one = one.parent as Frame
    const result = given(frame)
    assign(one, result)
    return result
  }
}

function unbound(name: string): never {
  throw new PythonError(
    'UnboundLocalError',
    `cannot access local variable '${name}' where it is not associated with a value`,
  )
}

/** Names that every module knows. */
const builtins = new Map<string, Value>()

/** Makes names known in every module. */
export function addBuiltins(names: ReadonlyMap<string, Value>): void {
  for (const [name, value] of names) builtins.set(name, value)
}

function globalOf(names: ReadonlyMap<string, Value>, name: string): Value {
  const value = orElse(names.get(name), builtins.get(name))
  if (value !== undefined) return value
  throw new PythonError('NameError', `name '${name}' is not defined`)
}

const CONVERSIONS: Readonly<Record<'r' | 's' | 'a', (value: Value) => string>> = {
  r: repr,
  s: str,
  a: value => encodeAsciiRepr(repr(value)),
}

function compileText(parts: readonly TextPart[], scope: Scope): Evaluate {
  const compiled = parts.map(part => {
    if (typeof part === 'string') return () => part
    const value = compileExpression(part.value, scope)
    const spec = part.format.length === 0 ? undefined : compileText(part.format, scope)
    const { conversion } = part
    return (frame: Frame): string => {
      const plain = value(frame)
      const shown = conversion === undefined ? plain : CONVERSIONS[conversion](plain)
      return spec === undefined ? str(shown) : format(shown, spec(frame) as string)
    }
  })
  return frame => {
    let text = ''
    for (const part of compiled) text += part(frame)
    return text
  }
}

/** Whether the expression is `super()`. */
export const isSuper = (object: Expression): boolean =>
  object.kind === 'call' && object.called.kind === 'name' && object.called.name === 'super'

function compileAttribute(object: Expression, name: string, scope: Scope): Evaluate {
  if (isSuper(object)) {
    return frame =>
      superAttribute(frame.slots[0] as Value, frame.running?.owner as ProgramClass, name)
  }
  const of = compileExpression(object, scope)
  return frame => attributeOf(of(frame), name)
}

function compileSubscript(
  { object, index }: Extract<Expression, { kind: 'subscript' }>,
  scope: Scope,
): Evaluate {
  const of = compileExpression(object, scope)
  if (index.kind !== 'slice') {
    const at = compileExpression(index, scope)
    return frame => itemOf(of(frame), at(frame))
  }
  const bound = (inner: Expression | undefined): Evaluate =>
    inner ? compileExpression(inner, scope) : () => null
  const [from, to, step] = [bound(index.from), bound(index.to), bound(index.step)]
  return frame => sliceOf(of(frame), { from: from(frame), to: to(frame), step: step(frame) })
}

function compileItems(
  { kind, items }: Extract<Expression, { kind: 'list' | 'tuple' | 'set' }>,
  scope: Scope,
): Evaluate {
  const compiled = items.map(item => ({
    isSpread: item.kind === 'starred',
    value: compileExpression(item.kind === 'starred' ? item.value : item, scope),
  }))
  const collect = (frame: Frame): Value[] => {
    const values: Value[] = []
    for (const { isSpread, value } of compiled) {
      if (isSpread) values.push(...iterate(value(frame)))
      else values.push(value(frame))
    }
    return values
  }
  if (kind === 'list') return collect
  if (kind === 'tuple') return frame => new PythonTuple(collect(frame))
  return frame => setOf(collect(frame))
}

/** A set of values, each once. */
export function setOf(values: Iterable<Value>): PythonSet {
  const distinct: Value[] = []
  for (const value of values) {
    requireKey(value)
    if (!distinct.some(known => isEqual(known, value))) distinct.push(value)
  }
  return new PythonSet(distinct as never[])
}

function compileDict(
  pairs: readonly (readonly [Expression | null, Expression])[],
  scope: Scope,
): Evaluate {
  const compiled = pairs.map(([key, value]) => ({
    key: key && compileExpression(key, scope),
    value: compileExpression(value, scope),
  }))
  return frame => {
    const dict: Dict = new Map()
    for (const { key, value } of compiled) {
      const name = key ? key(frame) : undefined
      if (typeof name === 'string') dict.set(name, value(frame))
      else if (name !== undefined) setItem(dict, name, value(frame))
      else for (const [each, item] of value(frame) as Dict) setItem(dict, each, item)
    }
    return dict
  }
}

function compileUnary(operator: 'not' | '-' | '+' | '~', value: Evaluate): Evaluate {
  if (operator === 'not') return frame => !isTrue(value(frame))
  return frame => applySign(RUNTIME, operator, value(frame)) as Value
}

function compileBoolean(operator: 'and' | 'or', left: Evaluate, right: Evaluate): Evaluate {
  if (operator === 'and') {
    return frame => {
      const first = left(frame)
      return isTrue(first) ? right(frame) : first
    }
  }
  return frame => {
    const first = left(frame)
    return isTrue(first) ? first : right(frame)
  }
}

type Compare = (left: Value, right: Value) => boolean

const COMPARISONS: Readonly<Record<string, Compare>> = {
  '==': isEqual,
  '!=': (left, right) => !isEqual(left, right),
  is: isSame,
  'is not': (left, right) => !isSame(left, right),
  in: isIn,
  'not in': (left, right) => !isIn(left, right),
  '<': (left, right) => isOrdered('<', left, right),
  '<=': (left, right) => isOrdered('<=', left, right),
  '>': (left, right) => isOrdered('>', left, right),
  '>=': (left, right) => isOrdered('>=', left, right),
}

function compileComparison(
  { first, rest }: Extract<Expression, { kind: 'compare' }>,
  scope: Scope,
): Evaluate {
  const start = compileExpression(first, scope)
  const steps = rest.map(([operator, operand]) => ({
    holds: COMPARISONS[operator] as Compare,
    operand: compileExpression(operand, scope),
  }))
  return frame => {
    let left = start(frame)
    for (const { holds, operand } of steps) {
      const right = operand(frame)
      if (!holds(left, right)) return false
      left = right
    }
    return true
  }
}
