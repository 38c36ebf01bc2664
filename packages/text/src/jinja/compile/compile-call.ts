import { methodNamed } from '../../python/methods/methods.ts'
import { plain } from '../../python/text/text.ts'
import { getAttribute } from '../access.ts'
import { FILTERS } from '../filters/filters.ts'
import { TESTS } from '../filters/tests.ts'
import { keyValues } from '../foreign.ts'
import type { Decide, Evaluate, RunFrame } from '../frame.ts'
import { callValue, unknownName } from '../frame.ts'
import { toList } from '../iteration.ts'
import type { CallArguments, Expression } from '../parse/syntax.ts'
import type { Run } from '../run.ts'
import { charge } from '../run.ts'
import type { Input, Value } from '../value.ts'
import { isText, typeError, typeOf, Undefined } from '../value.ts'
import { compileAll, compileExpression, constantValues } from './compile-expression.ts'
import { compileFind } from './compile-member.ts'
import type { CompilePlace } from './place.ts'
import { refuse } from './place.ts'

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>

/** The input of a call whose arguments are all constants. */
function constantInput(input: CallArguments): Input | undefined {
  if (input.unpacked || input.unpackedNamed) return undefined
  const positional = constantValues(input.positional)
  const values = constantValues(input.named.map(({ value }) => value))
  if (!positional || !values) return undefined
  const named = input.named.map(({ name }, index): [string, Value] => [
    name,
    values[index] as Value,
  ])
  return { positional, named: named.length > 0 ? new Map(named) : undefined }
}

/** Compiles the arguments of a call. */
export function compileArguments(
  place: CompilePlace,
  input: CallArguments,
): (frame: RunFrame) => Input {
  const constants = constantInput(input)
  if (constants) {
    place.template.cost += input.positional.length + input.named.length
    return () => constants
  }
  const positional = compileAll(place, input.positional)
  if (input.named.length === 0 && !input.unpacked && !input.unpackedNamed) {
    const [first, second] = positional
    if (first && positional.length === 1) {
      return frame => ({ positional: [first(frame)], named: undefined })
    }
    if (first && second && positional.length === 2) {
      return frame => ({ positional: [first(frame), second(frame)], named: undefined })
    }
    return frame => ({ positional: positional.map(each => each(frame)), named: undefined })
  }
  const named = input.named.map(each => [each.name, compileExpression(place, each.value)] as const)
  const unpacked = input.unpacked && compileExpression(place, input.unpacked)
  const unpackedNamed = input.unpackedNamed && compileExpression(place, input.unpackedNamed)
  return frame => {
    const values = positional.map(each => each(frame))
    const names = new Map<string, Value>()
    for (const [name, value] of named) names.set(name, value(frame))
    if (unpacked) unpackValues(frame.run, values, unpacked(frame))
    if (unpackedNamed) unpackNames(names, unpackedNamed(frame))
    return { positional: values, named: names.size > 0 ? names : undefined }
  }
}

function unpackValues(run: Run, values: Value[], sequence: Value): void {
  charge(run, sequence)
  for (const value of toList(run, sequence)) values.push(value)
}

function unpackNames(names: Map<string, Value>, mapping: Value): void {
  if (!(mapping instanceof Map)) {
    typeError(`argument after ** must be a mapping, not ${typeOf(mapping)}`)
  }
  for (const key of keyValues(mapping)) {
    if (!isText(key)) typeError('keywords must be strings')
    const name = plain(key)
    if (names.has(name)) typeError(`got multiple values for keyword argument '${name}'`)
    names.set(name, mapping.get(name) as Value)
  }
}

/** Compiles a call; a method call does not create a bound method first. */
export function compileCall(place: CompilePlace, expression: Of<'call'>): Evaluate {
  const { callee } = expression
  if (callee.kind === 'attribute') return compileMethodCall(place, callee, expression.input)
  const called = compileExpression(place, callee)
  const input = compileArguments(place, expression.input)
  return frame => {
    const value = called(frame)
    return callCharged(frame.run, value, input(frame))
  }
}

function compileMethodCall(
  place: CompilePlace,
  callee: Of<'attribute'>,
  input: CallArguments,
): Evaluate {
  const { name } = callee
  const owner = compileExpression(place, callee.object)
  const values = compileArguments(place, input)
  const constants = constantInput(input)
  const find = methodNamed(name)
  return frame => {
    const object = owner(frame)
    const method = find(object)
    if (method !== undefined && !method.changes) {
      charge(frame.run, object)
      return method.call(frame.run, object, constants ?? values(frame)) as Value
    }
    const called = getAttribute(object, name)
    return callCharged(frame.run, called, values(frame))
  }
}

function callCharged(run: Run, callee: Value, input: Input): Value {
  for (const value of input.positional) charge(run, value)
  return callValue(run, callee, input)
}

/** Compiles a filter applied to a value. */
export function compileFilter(place: CompilePlace, expression: Of<'filter'>): Evaluate {
  const { name } = expression
  if (!expression.value) return refuse(place, expression.at, 'a filter without a value')
  const value = compileExpression(place, expression.value)
  const apply = compileFilterOn(place, expression)
  if (!FILTERS.has(name)) return () => unknownName('filter', name)
  return frame => apply(frame, value(frame))
}

/** Compiles a filter that is given its value. */
export function compileFilterOn(
  place: CompilePlace,
  expression: Of<'filter'>,
): (frame: RunFrame, value: Value) => Value {
  const { name } = expression
  const filter = FILTERS.get(name)
  const input = compileArguments(place, expression.input)
  if (!filter) {
    if (!place.isSoft) refuse(place, expression.at, `No filter named '${name}'.`)
    return () => unknownName('filter', name)
  }
  const constants = constantInput(expression.input)
  return (frame, value) => {
    charge(frame.run, value)
    return filter.call(frame.run, value, constants ?? input(frame))
  }
}

/** Compiles a test. */
export function compileTest(place: CompilePlace, expression: Of<'test'>): Decide {
  const { name } = expression
  if (name === 'defined' || name === 'undefined') {
    const isDefined = compileDefined(place, expression.value)
    return name === 'defined' ? isDefined : frame => !isDefined(frame)
  }
  const value = compileExpression(place, expression.value)
  const input = compileArguments(place, expression.input)
  const test = TESTS.get(name)
  if (!test) {
    if (!place.isSoft) refuse(place, expression.at, `No test named '${name}'.`)
    return () => unknownName('test', name)
  }
  const constants = constantInput(expression.input)
  return frame => {
    const tested = value(frame)
    charge(frame.run, tested)
    return test(frame.run, tested, constants ?? input(frame))
  }
}

/** Whether a value is there. */
function compileDefined(place: CompilePlace, expression: Expression): Decide {
  const find = compileFind(place, expression)
  return frame => {
    const value = find(frame)
    return value !== undefined && !(value instanceof Undefined)
  }
}
