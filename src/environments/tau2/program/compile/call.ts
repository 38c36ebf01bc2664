import { call } from '../call.ts'
import { iterate, nameOf } from '../operators.ts'
import { repr } from '../show.ts'
import type { Argument, Expression } from '../source/syntax.ts'
import {
  BoundMethod,
  BuiltinClass,
  Native,
  ProgramClass,
  ProgramFunction,
  typeError,
  type Value,
} from '../values.ts'
import { compileExpression, type Evaluate } from './expression.ts'
import type { Frame, Scope } from './scope.ts'

/** Turns a call into a function that evaluates its arguments in order and makes it. */
export function compileCall(
  { called, arguments: given }: Extract<Expression, { kind: 'call' }>,
  scope: Scope,
): Evaluate {
  const callee = compileExpression(called, scope)
  const parts = given.map(argument => compileArgument(argument, scope))
  if (parts.every(part => part.kind === 'place')) {
    const values = parts.map(({ value }) => value)
    return frame => {
      const target = callee(frame)
      return call(
        target,
        values.map(value => value(frame)),
      )
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
