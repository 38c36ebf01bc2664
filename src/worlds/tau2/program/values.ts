import {
  PythonError,
  type PythonFloat,
  PythonSet,
  PythonTuple,
  type PythonValue,
} from '@espalier/text/python'

/** A value of a running program: one of Python's own, or an object of a class. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | PythonFloat
  | PythonTuple<Value>
  | PythonSet
  | PythonError
  | Value[]
  | Dict
  | ProgramObject

/** A `dict`. */
export type Dict = Map<Value, Value>

/** Arguments given by name. */
export type Named = ReadonlyMap<string, Value>

/** Casts for the functions of `python`, which do not know the objects here. */
export const plain = (value: Value): PythonValue => value as PythonValue

/** An object that is not one of Python's built-in values; `type` is the name of its class. */
export abstract class ProgramObject {
  abstract readonly type: string
}

/** A module, with what it defines. */
export class Module extends ProgramObject {
  readonly type = 'module'
  readonly name: string
  readonly scope: Map<string, Value>
  constructor(name: string, scope: Map<string, Value> = new Map()) {
    super()
    this.name = name
    this.scope = scope
  }
}

/** A parameter of a function that runs: its annotation and default already evaluated. */
export interface BoundParameter {
  readonly name: string
  readonly kind: 'plain' | 'keyword-only' | 'rest' | 'named-rest'
  readonly annotation?: Value
  readonly default?: Value
}

/** What all functions made of one `def` or `lambda` have in common. */
export interface FunctionPlan {
  readonly name: string
  readonly qualifiedName: string
  readonly module: string
  readonly doc: string | null
  /** How many variables it has, its parameters first. */
  readonly size: number
  /** Whether its parameters are plain ones without defaults, which are bound at once. */
  readonly isSimple: boolean
  run(slots: (Value | undefined)[], made: ProgramFunction): Value
}

/** A function of the program. */
export class ProgramFunction extends ProgramObject {
  readonly type = 'function'
  readonly plan: FunctionPlan
  readonly parameters: readonly BoundParameter[]
  readonly returns: Value | undefined
  /** The variables of the scope it was made in. */
  readonly around: unknown
  /** The class whose body defines it, for `super()`. */
  owner: ProgramClass | undefined
  #attributes: Map<string, Value> | undefined
  constructor(
    plan: FunctionPlan,
    parameters: readonly BoundParameter[],
    { returns, around }: { readonly returns: Value | undefined; readonly around: unknown },
  ) {
    super()
    this.plan = plan
    this.parameters = parameters
    this.returns = returns
    this.around = around
    this.owner = undefined
  }
  get name(): string {
    return this.plan.name
  }
  get qualifiedName(): string {
    return this.plan.qualifiedName
  }
  get module(): string {
    return this.plan.module
  }
  get doc(): string | null {
    return this.plan.doc
  }
  /** What decorators wrote on it. */
  get attributes(): Map<string, Value> {
    this.#attributes ??= new Map()
    return this.#attributes
  }
}

/** A function written in TypeScript. */
export class Native extends ProgramObject {
  readonly type = 'builtin_function_or_method'
  readonly name: string
  readonly call: (given: readonly Value[], named: Named) => Value
  constructor(name: string, call: (given: readonly Value[], named: Named) => Value) {
    super()
    this.name = name
    this.call = call
  }
}

/** A function with the object it was taken from. */
export class BoundMethod extends ProgramObject {
  readonly type = 'method'
  readonly called: ProgramFunction | Native
  readonly self: Value
  constructor(called: ProgramFunction | Native, self: Value) {
    super()
    this.called = called
    this.self = self
  }
}

/** How instances of a class behave beside its methods. */
export type ClassKind = 'plain' | 'enum' | 'model'

/** A class: of the program, or made here for it. */
export class ProgramClass extends ProgramObject {
  readonly type = 'type'
  readonly name: string
  readonly module: string
  readonly bases: readonly Value[]
  readonly kind: ClassKind
  readonly attributes: Map<string, Value>
  /** Annotations of this class body only, in order. */
  readonly annotations: ReadonlyMap<string, Value>
  readonly doc: string | null
  /** This class and those it inherits from, nearest first. */
  readonly lineage: readonly ProgramClass[]
  /** Of an enum: whether its members are texts as well. */
  readonly isText: boolean
  constructor(parts: {
    readonly name: string
    readonly module: string
    readonly bases?: readonly Value[]
    readonly kind?: ClassKind
    readonly attributes?: Map<string, Value>
    readonly annotations?: ReadonlyMap<string, Value>
    readonly doc?: string | null
    readonly isText?: boolean
  }) {
    super()
    this.name = parts.name
    this.module = parts.module
    this.bases = parts.bases ?? []
    this.kind = parts.kind ?? 'plain'
    this.attributes = parts.attributes ?? new Map()
    this.annotations = parts.annotations ?? new Map()
    this.doc = parts.doc ?? null
    this.isText = parts.isText ?? false
    this.lineage = [this, ...lineageOf(this.bases)]
  }
  /** The attribute of this class or of the nearest one above that has it. */
  find(name: string): Value | undefined {
    for (const known of this.lineage) {
      const value = known.attributes.get(name)
      if (value !== undefined) return value
    }
    return undefined
  }
  isWithin(other: ProgramClass): boolean {
    return this.lineage.includes(other)
  }
}

/** Bases left to right, each class once, where the last of them stands. */
function lineageOf(bases: readonly Value[]): readonly ProgramClass[] {
  const all = bases.flatMap(base => (base instanceof ProgramClass ? base.lineage : []))
  return all.filter((known, index) => all.lastIndexOf(known) === index)
}

/** An object of a class of the program. */
export class Instance extends ProgramObject {
  readonly class: ProgramClass
  fields: Map<string, Value>
  constructor(of: ProgramClass, fields: Map<string, Value> = new Map()) {
    super()
    this.class = of
    this.fields = fields
  }
  get type(): string {
    return this.class.name
  }
}

/** A member of an enum; there is one object of each. */
export class EnumMember extends ProgramObject {
  readonly class: ProgramClass
  readonly name: string
  readonly value: Value
  constructor(of: ProgramClass, name: string, value: Value) {
    super()
    this.class = of
    this.name = name
    this.value = value
  }
  get type(): string {
    return this.class.name
  }
  /** The text of a member that is a text. */
  get asText(): string | undefined {
    return this.class.isText && typeof this.value === 'string' ? this.value : undefined
  }
  /** A member that is a text equals that text. */
  equals(other: unknown): boolean {
    if (this === other || !this.class.isText) return this === other
    return other instanceof EnumMember
      ? other.class.isText && other.value === this.value
      : other === this.value
  }
}

/** The text of a member that is a text; every other value as it is. */
export const unwrap = (value: Value): Value =>
  value instanceof EnumMember && value.class.isText ? value.value : value

/** A method read like a field. */
export class Property extends ProgramObject {
  readonly type = 'property'
  readonly getter: Value
  constructor(getter: Value) {
    super()
    this.getter = getter
  }
}

/** A `classmethod` or a `staticmethod`. */
export class ClassMethod extends ProgramObject {
  readonly called: Value
  readonly takesClass: boolean
  constructor(called: Value, takesClass: boolean) {
    super()
    this.called = called
    this.takesClass = takesClass
  }
  get type(): string {
    return this.takesClass ? 'classmethod' : 'staticmethod'
  }
}

/** One of Python's own classes, such as `str`. */
export class BuiltinClass extends ProgramObject {
  readonly type = 'type'
  readonly name: string
  readonly make: (given: readonly Value[], named: Named) => Value
  constructor(name: string, make: (given: readonly Value[], named: Named) => Value) {
    super()
    this.name = name
    this.make = make
  }
}

/** A class of exceptions, by its name; `parents` are those that catch it too, nearest first. */
export class ExceptionClass extends ProgramObject {
  readonly type = 'type'
  readonly name: string
  readonly parents: readonly string[]
  constructor(name: string, parents: readonly string[]) {
    super()
    this.name = name
    this.parents = parents
  }
}

/** An object with fields set once and methods in TypeScript, such as a compiled pattern. */
export class Opaque extends ProgramObject {
  readonly name: string
  readonly members: ReadonlyMap<string, Value>
  constructor(name: string, members: ReadonlyMap<string, Value>) {
    super()
    this.name = name
    this.members = members
  }
  get type(): string {
    return this.name
  }
}

/** `bytes`. */
export class ProgramBytes extends ProgramObject {
  readonly type = 'bytes'
  readonly data: Buffer
  constructor(data: Buffer) {
    super()
    this.data = data
  }
}

/** `...`, also if a field has no default. */
export const ELLIPSIS = new Opaque('ellipsis', new Map())

/** Whatever can be called. */
export type Callable =
  | ProgramFunction
  | Native
  | BoundMethod
  | ProgramClass
  | BuiltinClass
  | ExceptionClass

/** Whether a value can be called. */
export const isCallable = (value: Value): value is Callable =>
  value instanceof ProgramFunction ||
  value instanceof Native ||
  value instanceof BoundMethod ||
  value instanceof ProgramClass ||
  value instanceof BuiltinClass ||
  value instanceof ExceptionClass

/** A value, or another if it is undefined; unlike `??` it keeps `None`, which is null here. */
export const orElse = <T extends Value | undefined>(
  value: Value | undefined,
  other: T,
): Value | T => (value === undefined ? other : value)

/** A `TypeError` with Python's words. */
export const typeError = (message: string): PythonError => new PythonError('TypeError', message)

/** A `ValueError` with Python's words. */
export const valueError = (message: string): PythonError => new PythonError('ValueError', message)

export { PythonError, PythonSet, PythonTuple }
