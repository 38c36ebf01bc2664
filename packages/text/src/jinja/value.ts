import { typeName } from '../python/compare.ts'
import { PythonError } from '../python/error.ts'
import type { PythonFloat, PythonKey, PythonSet, PythonValue } from '../python/value.ts'
import { PythonTuple } from '../python/value.ts'
import type { Run } from './run.ts'
import { TemplateText } from './template-text.ts'

/** Any value a template can hold. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | PythonFloat
  | TemplateText
  | PythonTuple<Value>
  | PythonSet
  | readonly Value[]
  | Dict
  | Undefined
  | Namespace
  | TemplateObject

/** A dict of template values. Its keys are plain; `foreignKeys` knows which came from outside. */
export type Dict = Map<PythonKey, Value>

/** A string, plain or with what is known about its characters. */
export type Text = string | TemplateText

/** What a call passes. */
export interface Input {
  readonly positional: readonly Value[]
  readonly named: ReadonlyMap<string, Value> | undefined
}

/** A function that templates can call; `run` is the rendering it works in. */
export type Callable = (run: Run, input: Input) => Value

/** An object with behaviour: a macro, a loop, an iterator. */
export class TemplateObject {
  /** The name of its class in Python, for error messages. */
  readonly type: string
  readonly behaviour: Behaviour
  /** What the behaviour works on, where many objects share one behaviour. */
  readonly state: unknown
  constructor(type: string, behaviour: Behaviour, state?: unknown) {
    this.type = type
    this.behaviour = behaviour
    this.state = state
  }
}

/** What an object can do; its state is the last argument. A missing member means that it cannot. */
export interface Behaviour {
  readonly attribute?: (name: string, state: unknown) => Value | undefined
  readonly call?: (run: Run, input: Input, state: unknown) => Value
  /** Its items, if all of them are at hand. */
  readonly items?: (state: unknown) => readonly Value[]
  /** A walk that makes items as it goes. */
  readonly iterate?: (state: unknown) => Iterator<Value>
  readonly length?: (state: unknown) => number
  readonly item?: (index: number) => Value | undefined
  /** So many items from the first on, `step` apart. */
  readonly slice?: (first: number, count: number, step: number) => Value
  readonly show?: (state: unknown) => string
}

/** Jinja's undefined value: it prints as nothing, and most other uses raise. */
export class Undefined {
  readonly type = 'Undefined'
  readonly error: 'UndefinedError' | 'SecurityError'
  readonly #describe: () => string
  constructor(describe: () => string, error: Undefined['error'] = 'UndefinedError') {
    this.#describe = describe
    this.error = error
  }

  /** All undefined values are equal. */
  equals(other: unknown): boolean {
    return other instanceof Undefined
  }

  /** Raises, as Jinja does when an undefined value is used. */
  raise(): never {
    throw new PythonError(this.error, this.#describe())
  }
}

/** A namespace, whose attributes a template may set. */
export class Namespace {
  readonly type = 'Namespace'
  readonly attributes: Map<string, Value>
  constructor(attributes: Map<string, Value>) {
    this.attributes = attributes
  }
}

/** The undefined value of a name. */
export const undefinedName = (name: string): Undefined =>
  new Undefined(() => `'${name}' is undefined`)

/** The undefined value of an attribute or item that an object does not have. */
export function undefinedMember(object: Value, name: Value): Undefined {
  return new Undefined(() => {
    const owner = object === null ? 'None' : `${typeOf(object)} object`
    const text =
      typeof name === 'string' ? name : name instanceof TemplateText ? name.text : undefined
    return text === undefined
      ? `${owner} has no element ${describeKey(name)}`
      : `'${owner}' has no attribute '${text}'`
  })
}

const describeKey = (key: Value): string =>
  typeof key === 'number' || typeof key === 'bigint' ? String(key) : `of type ${typeOf(key)}`

/** The undefined value of an attribute that the sandbox refuses. */
export const refusedAttribute = (object: Value, name: string): Undefined =>
  new Undefined(
    () => `access to attribute '${name}' of '${typeOf(object)}' object is unsafe.`,
    'SecurityError',
  )

/** The name of the value's class in Python. */
export const typeOf = (value: Value): string => typeName(value as PythonValue)

/** Whether the value is a `str`. */
export const isText = (value: Value | undefined): value is Text =>
  typeof value === 'string' || value instanceof TemplateText

/** Whether the value is a list. */
export const isList = (value: Value | undefined): value is readonly Value[] => Array.isArray(value)

/** The items of a list or tuple, else `undefined`. */
export function sequenceItems(value: Value): readonly Value[] | undefined {
  if (Array.isArray(value)) return value
  return value instanceof PythonTuple ? value.items : undefined
}

/** Raises a TypeError. */
export function typeError(message: string): never {
  throw new PythonError('TypeError', message)
}

/** Raises a ValueError. */
export function valueError(message: string): never {
  throw new PythonError('ValueError', message)
}
