import { PythonError } from './error.ts'
import type { Runtime } from './runtime.ts'
import type { Value } from './value.ts'

/** What a call passes. */
export interface Input<Given extends Value = Value> {
  readonly positional: readonly Given[]
  readonly named: ReadonlyMap<string, Given> | undefined
}

/** The parameters of a built-in function, in order; those after `required` may be left out. */
export interface Signature {
  readonly name: string
  readonly parameters: readonly string[]
  readonly required: number
  /** How many of the first parameters take arguments by place. */
  readonly placed: number
  /** From which parameter on arguments may be passed by name. */
  readonly namedFrom: number
}

/**
 * A signature from its words: `signature('replace', 'old new count?', false)`. Arguments may be passed by
 * name, none of them (`false`), or those from a place on; behind a `*` they must be.
 */
export function signature(name: string, words: string, byName: boolean | number = true): Signature {
  const list = words === '' ? [] : words.split(' ')
  const star = list.indexOf('*')
  const parameters = list.filter(word => word !== '*').map(word => word.replace('?', ''))
  return {
    name,
    parameters,
    required: list.filter(word => !word.endsWith('?') && word !== '*').length,
    placed: star < 0 ? parameters.length : star,
    namedFrom: typeof byName === 'number' ? byName : byName ? 0 : Number.POSITIVE_INFINITY,
  }
}

/** Puts the arguments of a call in the order of the parameters, or raises as Python does. */
export function bind<Given extends Value>(
  shape: Signature,
  input: Input<Given>,
): readonly (Given | undefined)[] {
  const { name, parameters, required, placed } = shape
  const { positional, named } = input
  if (positional.length > placed) throw tooMany(shape, positional.length)
  const values: (Given | undefined)[] = [...positional]
  for (const [key, value] of named ?? []) {
    const index = parameters.indexOf(key)
    if (shape.namedFrom === Number.POSITIVE_INFINITY)
      throw typeError(`${name}() takes no keyword arguments`)
    if (index < shape.namedFrom)
      throw typeError(`${name}() got an unexpected keyword argument '${key}'`)
    if (values[index] !== undefined)
      throw typeError(`${name}() got multiple values for argument '${key}'`)
    values[index] = value
  }
  for (let index = 0; index < required; index++) {
    if (values[index] === undefined)
      throw typeError(`${name}() missing required argument: '${parameters[index]}'`)
  }
  return values
}

/** Python counts the arguments of `list.append` and its like in words of their own. */
function tooMany({ name, placed, required }: Signature, given: number): PythonError {
  if (placed === 0) return typeError(`${name}() takes no arguments (${given} given)`)
  if (placed === 1 && required === 1)
    return typeError(`${name}() takes exactly one argument (${given} given)`)
  return typeError(`${name}() takes at most ${placed} arguments (${given} given)`)
}

const typeError = (message: string): PythonError => new PythonError('TypeError', message)

/** The work of a method: the object it belongs to, and its arguments in order. */
export type MethodBody<
  Self extends Given,
  Given extends Value = Value,
  Run extends Runtime = Runtime,
> = (self: Self, values: readonly (Given | undefined)[], run: Run) => Given

/** A method of a Python class. */
export interface Method<Given extends Value = Value, Run extends Runtime = Runtime> {
  /** Whether it changes the object. */
  readonly changes: boolean
  readonly call: (run: Run, self: Given, input: Input<Given>) => Given
}

/** A method from its signature and its work. */
export function method<
  Self extends Given,
  Given extends Value = Value,
  Run extends Runtime = Runtime,
>(shape: Signature, body: MethodBody<Self, Given, Run>): Method<Given, Run> {
  const { required, placed } = shape
  return {
    changes: false,
    call: (run, self, input) => {
      const { positional, named } = input
      const isPlain =
        named === undefined && positional.length >= required && positional.length <= placed
      return body(self as Self, isPlain ? positional : bind(shape, input), run)
    },
  }
}
