import type { Argument, Expression } from '@espalier/text/python'
import { attributeOf } from '../attributes.ts'
import { call } from '../call.ts'
import { iterate, nameOf } from '../operators.ts'
import { repr } from '../show.ts'
import {
  BoundMethod,
  BuiltinClass,
  Instance,
  Native,
  ProgramClass,
  ProgramFunction,
  typeError,
  type Value,
} from '../values.ts'
import { compileExpression, type Evaluate, isSuper } from './expression.ts'
import type { Frame, Scope } from './scope.ts'

/** Turns a call into a function that evaluates its arguments in order and makes it. */
export function compileCall(
  { called, arguments: given }: Extract<Expression, { kind: 'call' }>,
  scope: Scope,
): Evaluate {
  const parts = given.map(argument => compileArgument(argument, scope))
  const values = parts.every(part => part.kind === 'place')
    ? parts.map(({ value }) => value)
    : undefined
  if (values && called.kind === 'attribute' && !isSuper(called.object)) {
    return compileMethodCall(called, values, scope)
  }
  const callee = compileExpression(called, scope)
  if (values) {
    return frame => {
      const target = callee(frame)
      return call(target, evaluateAll(values, frame))
    }
  }
  return frame => {
    const target = callee(frame)
    const places: Value[] = []
    const named = new Map<string, Value>()
    for (const part of parts) addArgument(part, { frame, target, places, named })
    return call(target, places, named)
  }
}

function evaluateAll(values: readonly Evaluate[], frame: Frame): Value[] {
  const all: Value[] = []
  for (const value of values) all.push(value(frame))
  return all
}

/** A call of a method: one that the class of an object defines is called without being bound first. */
function compileMethodCall(
  { object, name }: Extract<Expression, { kind: 'attribute' }>,
  values: readonly Evaluate[],
  scope: Scope,
): Evaluate {
  const of = compileExpression(object, scope)
  return frame => {
    const self = of(frame)
    if (self instanceof Instance && !self.fields.has(name)) {
      const method = self.class.find(name)
      if (method instanceof ProgramFunction) {
        const all: Value[] = [self]
        for (const value of values) all.push(value(frame))
        return call(method, all)
      }
    }
    const target = attributeOf(self, name)
    return call(target, evaluateAll(values, frame))
  }
}

type Part =
  | { readonly kind: 'place' | 'spread' | 'spread-named'; readonly value: Evaluate }
  | { readonly kind: 'named'; readonly name: string; readonly value: Evaluate }

function compileArgument({ spread, name, value }: Argument, scope: Scope): Part {
  const compiled = compileExpression(value, scope)
  if (name !== undefined) return { kind: 'named', name, value: compiled }
  if (spread === undefined) return { kind: 'place', value: compiled }
  return { kind: spread === '*' ? 'spread' : 'spread-named', value: compiled }
}

interface Gathering {
  readonly frame: Frame
  readonly target: Value
  readonly places: Value[]
  readonly named: Map<string, Value>
}

function addArgument(part: Part, { frame, target, places, named }: Gathering): void {
  const value = part.value(frame)
  if (part.kind === 'place') places.push(value)
  else if (part.kind === 'named') named.set(part.name, value)
  else if (part.kind === 'spread') places.push(...iterate(value))
  else addNamed(target, value, named)
}

/** Adds what `**` spreads, with Python's words for what cannot be spread. */
export function addNamed(target: Value, value: Value, named: Map<string, Value>): void {
  if (!(value instanceof Map)) {
    throw typeError(
      `${fullName(target)}() argument after ** must be a mapping, not ${nameOf(value)}`,
    )
  }
  for (const [key, item] of value) {
    if (typeof key !== 'string') throw typeError('keywords must be strings')
    if (named.has(key)) {
      throw typeError(`${fullName(target)}() got multiple values for keyword argument '${key}'`)
    }
    named.set(key, item)
  }
}

function fullName(target: Value): string {
  const called = target instanceof BoundMethod ? target.called : target
  if (called instanceof ProgramFunction) return `${called.module}.${called.qualifiedName}`
  if (called instanceof ProgramClass) return `${called.module}.${called.name}`
  return called instanceof Native || called instanceof BuiltinClass ? called.name : repr(called)
}
