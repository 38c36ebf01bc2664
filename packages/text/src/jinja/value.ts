import { isText, typeName } from '../python/compare.ts'
import { PythonError } from '../python/error.ts'
import { typeError, valueError } from '../python/methods/arguments.ts'
import { sequenceItems as pythonItems } from '../python/operators.ts'
import type { Input as PythonInput } from '../python/signature.ts'
import type { Span } from '../python/slice.ts'
import { plain } from '../python/text/text.ts'
import type {
  PythonFloat,
  PythonKey,
  PythonSet,
  PythonText,
  PythonTuple,
  Text,
} from '../python/value.ts'
import type { Run } from './run.ts'

/** Any value a template can hold. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | PythonFloat
  | PythonText
  | PythonTuple<Value>
  | PythonSet
  | readonly Value[]
  | Dict
  | Undefined
  | Namespace
  | TemplateObject

/** A dict of template values. Its keys are plain; `foreignKeys` knows which came from outside. */
export type Dict = Map<PythonKey, Value>

/** What a call passes. */
export type Input = PythonInput<Value>

/** A function that templates can call; `run` is the rendering it works in. */
export type Callable = (run: Run, input: Input) => Value

/** An object with behaviour: a macro, a loop, an iterator. */
export class TemplateObject {
  /** The name of its class in Python, for error messages. */
  readonly type: string
  readonly behaviour: Behaviour
  /** What the behaviour works on, if many objects share one behaviour. */
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
  /** The items that a slice covers, `step` apart. */
  readonly slice?: (span: Span, step: number) => Value
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
    return isText(name)
      ? `'${owner}' has no attribute '${plain(name)}'`
      : `${owner} has no element ${describeKey(name)}`
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
export const typeOf = (value: Value): string => typeName(value)

/** Whether the value is a list. */
export const isList = (value: Value | undefined): value is readonly Value[] => Array.isArray(value)

/** The items of a list or tuple, else `undefined`. */
export const sequenceItems = (value: Value): readonly Value[] | undefined =>
  pythonItems(value) as readonly Value[] | undefined

export { isText, type Text, typeError, valueError }
