import type { Run } from './run.ts'
import type { Input, Value } from './value.ts'
import { typeError } from './value.ts'

/** The parameters of a built-in function, in order; those after `required` may be left out. */
export interface Signature {
  readonly name: string
  readonly parameters: readonly string[]
  readonly required: number
  /** Whether arguments may be passed by name. */
  readonly byName: boolean
}

/** A signature from its words: `signature('replace', 'old new count?')`. */
export function signature(name: string, words: string, byName = true): Signature {
  const list = words === '' ? [] : words.split(' ')
  const parameters = list.map(word => word.replace('?', ''))
  return { name, parameters, required: list.filter(word => !word.endsWith('?')).length, byName }
}

/** Puts the arguments of a call in the order of the parameters, or raises as Python does. */
export function bind(shape: Signature, input: Input): readonly (Value | undefined)[] {
  const { name, parameters, required } = shape
  const { positional, named } = input
  if (positional.length > parameters.length) {
    typeError(`${name}() takes at most ${parameters.length} arguments (${positional.length} given)`)
  }
  const values: (Value | undefined)[] = [...positional]
  if (named !== undefined && named.size > 0) {
    if (!shape.byName) typeError(`${name}() takes no keyword arguments`)
    for (const [key, value] of named) {
      const index = parameters.indexOf(key)
      if (index < 0) typeError(`${name}() got an unexpected keyword argument '${key}'`)
      if (values[index] !== undefined) {
        typeError(`${name}() got multiple values for argument '${key}'`)
      }
      values[index] = value
    }
  }
  for (let index = 0; index < required; index++) {
    if (values[index] === undefined) {
      typeError(`${name}() missing required argument: '${parameters[index]}'`)
    }
  }
  return values
}

/** The work of a method: the object it belongs to, and its arguments in order. */
export type MethodBody<Self extends Value> = (
  self: Self,
  values: readonly (Value | undefined)[],
  run: Run,
) => Value

/** A method of a Python class. */
export interface Method {
  /** Whether the sandbox refuses it, because it would change the object. */
  readonly isRefused: boolean
  readonly call: (run: Run, self: Value, input: Input) => Value
}

/** A method from its signature and its work. */
export function method<Self extends Value>(shape: Signature, body: MethodBody<Self>): Method {
  const { required, parameters } = shape
  return {
    isRefused: false,
    call: (run, self, input) => {
      const { positional, named } = input
      const isPlain =
        named === undefined &&
        positional.length >= required &&
        positional.length <= parameters.length
      return body(self as Self, isPlain ? positional : bind(shape, input), run)
    },
  }
}

/** A method that exists in Python but that the sandbox never gives out. */
export const REFUSED: Method = {
  isRefused: true,
  call: () => typeError('The sandbox refuses this method.'),
}
