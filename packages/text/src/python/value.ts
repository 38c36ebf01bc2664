import { PythonError } from './error.ts'

/**
 * A Python value. A JavaScript number without a fraction is an `int` (a `bigint` if it would lose
 * digits), every other number a `float`; `PythonFloat` tells `1.0` from `1`.
 */
export type PythonValue =
  | null
  | boolean
  | number
  | bigint
  | PythonFloat
  | string
  | PythonTuple
  | PythonSet
  | readonly PythonValue[]
  | PythonDict

/** What Python can hash among its plain values. */
export type PythonKey = null | boolean | number | bigint | PythonFloat | string | PythonTuple

/** A `dict`. A Map, because objects of JavaScript move integer-like keys to the front. */
export type PythonDict = Map<PythonKey, PythonValue>

/** A `float`, also if its value is whole. */
export class PythonFloat {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** A `tuple`; lists are arrays. */
export class PythonTuple<Item = PythonValue> {
  readonly items: readonly Item[]
  constructor(items: readonly Item[]) {
    this.items = items
  }
}

/** A `str` that knows more than its characters; if only they count, it is a string like others. */
export abstract class PythonText {
  /** The characters. */
  abstract readonly text: string
  /** Whether this is Python's `Markup`, a text already escaped for HTML. */
  abstract readonly markup: boolean
  /** How many UTF-16 units it has at most. */
  abstract readonly size: number
  /** The part between two UTF-16 offsets. */
  abstract slice(start: number, end: number): Text
  /** The text with its characters changed. */
  abstract map(change: (text: string) => string): Text
  /** The change of a text whose characters are not known yet, which grows `growth` times at most. */
  abstract later(change: (text: string) => string, growth: number): Text | undefined
  /** The answer to a question about the characters. */
  abstract ask(question: (text: string) => boolean): boolean
  /** The texts one after the other, as a plain `str`. */
  abstract join(parts: readonly Text[]): Text
  /** The other text as it may be put into this one: Markup escapes it. */
  abstract admit(other: Text): Text
  /** The other text as one of this class: made of Markup, it is Markup. */
  abstract like(other: Text): Text
}

/** A `str`, plain or with what is known about its characters. */
export type Text = string | PythonText

/** An object that is none of Python's plain values; `type` is the name of its class. */
export interface PythonObject {
  readonly type: string
  /** The characters, if its class is derived from `str`. */
  readonly asText?: string | undefined
}

/** Any value that a template or a program can hold. */
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
  | Map<Value, Value>
  | PythonObject

/** A `set` in order of insertion, its items already distinct. */
export class PythonSet {
  readonly items: readonly PythonKey[]
  constructor(items: readonly PythonKey[]) {
    this.items = items
  }
}

/** How deep values may nest: beyond it Python's own `json` gives up as well. */
export const MAXIMUM_DEPTH = 1000

/** As many digits as Python converts between `int` and text; longer ones raise ValueError. */
const MAXIMUM_DIGITS = 4300
// wide enough for every int of that many digits, small enough to compute with
const LARGEST_INT = 1n << 20_000n

/** An integer in its normal form: a number while all digits are safe, a bigint beyond. */
export function toInt(value: bigint): number | bigint {
  if (value >= -9007199254740991n && value <= 9007199254740991n) return Number(value)
  if (value <= LARGEST_INT && value >= -LARGEST_INT) return value
  throw new PythonError('OverflowError', 'The int has more than 20000 bits.')
}

/** An integer from the digits of a literal, such as `-12` or `0xff`. */
export function readInt(digits: string): number | bigint {
  const value = Number(digits)
  if (Number.isSafeInteger(value)) return value + 0
  if (digits.length > MAXIMUM_DIGITS) throw tooManyDigits()
  return digits.startsWith('-') ? toInt(-BigInt(digits.slice(1))) : toInt(BigInt(digits))
}

/** The digits of an integer. */
export function formatInt(value: bigint): string {
  const text = value.toString()
  if (text.length > MAXIMUM_DIGITS + 1) throw tooManyDigits()
  return text
}

const tooManyDigits = (): PythonError =>
  new PythonError(
    'ValueError',
    `Exceeds the limit (${MAXIMUM_DIGITS} digits) for integer string conversion`,
  )

/** Lets values of a richer kind through `fromJavaScript` untouched. */
export interface ConversionOptions {
  keep?(value: object): boolean
}

/**
 * Plain JavaScript data as Python values: objects become dicts of their own enumerable members
 * (`undefined` members are left out, as JSON does), Python values stay what they are.
 */
export function fromJavaScript(value: unknown, options: ConversionOptions = {}): PythonValue {
  return convert(value, { options, hasInherited: hasInheritedMembers() }, 0)
}

/** What is the same for all parts of a value that is being converted. */
interface Conversion {
  readonly options: ConversionOptions
  /** Whether loops over the members of an object see more than its own. */
  readonly hasInherited: boolean
}

/** Whether somebody gave all objects a member that loops see. */
function hasInheritedMembers(): boolean {
  for (const _ in Object.prototype) return true
  return false
}

function convert(value: unknown, conversion: Conversion, depth: number): PythonValue {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return fromNumber(value)
    case 'bigint':
      return toInt(value)
    case 'undefined':
      return null
    case 'object':
      return value === null ? null : convertObject(value, conversion, depth)
    default:
      throw new PythonError('TypeError', `A ${typeof value} has no Python value.`)
  }
}

function fromNumber(value: number): PythonValue {
  if (!Number.isInteger(value)) return new PythonFloat(value)
  return Number.isSafeInteger(value) ? value + 0 : BigInt(value)
}

function convertObject(value: object, conversion: Conversion, depth: number): PythonValue {
  if (depth > MAXIMUM_DEPTH) {
    throw new PythonError('RecursionError', `The value nests deeper than ${MAXIMUM_DEPTH} levels.`)
  }
  if (Array.isArray(value)) {
    const items: PythonValue[] = []
    for (let index = 0; index < value.length; index++) {
      items.push(convert(value[index], conversion, depth + 1))
    }
    return items
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) {
    return convertMembers(value as Record<string, unknown>, conversion, depth)
  }
  return convertInstance(value, conversion, depth)
}

function convertMembers(
  value: Record<string, unknown>,
  conversion: Conversion,
  depth: number,
): PythonDict {
  const dict: PythonDict = new Map()
  for (const key in value) {
    if (conversion.hasInherited && !Object.hasOwn(value, key)) continue
    const member = value[key]
    if (typeof member === 'string') dict.set(key, member)
    else if (member !== undefined) dict.set(key, convert(member, conversion, depth + 1))
  }
  return dict
}

function convertInstance(value: object, conversion: Conversion, depth: number): PythonValue {
  if (value instanceof PythonFloat || value instanceof PythonSet) return value
  if (conversion.options.keep?.(value)) return value as PythonValue
  if (value instanceof PythonTuple) {
    return new PythonTuple(value.items.map(item => convert(item, conversion, depth + 1)))
  }
  if (value instanceof Map) {
    const dict: PythonDict = new Map()
    for (const [key, item] of value) dict.set(key, convert(item, conversion, depth + 1))
    return dict
  }
  const name = value.constructor?.name ?? 'object'
  throw new PythonError('TypeError', `A ${name} has no Python value; give plain data instead.`)
}

/** Python values as plain JavaScript data: floats become numbers, dicts objects, tuples arrays. */
export function toJavaScript(value: PythonValue): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof PythonFloat) return value.value
  if (value instanceof PythonTuple || value instanceof PythonSet) {
    return value.items.map(toJavaScript)
  }
  if (!(value instanceof Map)) return value.map(toJavaScript)
  // fromEntries defines members, so a key `__proto__` stays a key
  return Object.fromEntries(
    Array.from(value, ([key, item]) => [keyToMember(key), toJavaScript(item)]),
  )
}

function keyToMember(key: PythonKey): string {
  if (typeof key === 'string') return key
  if (key instanceof PythonFloat) return String(key.value)
  if (key instanceof PythonTuple) {
    throw new PythonError('TypeError', 'A tuple cannot be the key of a JavaScript object.')
  }
  return String(key)
}
