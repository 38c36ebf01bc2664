import { asNumber, asText, findKey, isText, typeName } from './compare.ts'
import { PythonError } from './error.ts'
import { formatPercent } from './format/percent.ts'
import { typeError } from './methods/arguments.ts'
import { arithmetic, invert, negate, type Operation, type PythonNumber } from './number.ts'
import type { Runtime } from './runtime.ts'
import { spend, spendText } from './runtime.ts'
import { admit, joinTexts, likeText, plain, sizeOf } from './text/text.ts'
import {
  PythonFloat,
  type PythonKey,
  PythonSet,
  PythonText,
  PythonTuple,
  type Text,
  toInt,
  type Value,
} from './value.ts'

/** Python's binary operators, those of comparison and logic apart. */
export type BinaryOperator = Operation | '|' | '&' | '^' | '<<' | '>>'

/** The items of a list or tuple, else `undefined`. */
export function sequenceItems(value: Value): readonly Value[] | undefined {
  if (Array.isArray(value)) return value
  return value instanceof PythonTuple ? value.items : undefined
}

/** A text of either kind, or of a class derived from `str`. */
const textOf = (value: Value): Text | undefined => (isText(value) ? value : asText(value))

/** Python's `+`; `sign` is how a failure names it, `+=` in a statement. */
export function add(run: Runtime, left: Value, right: Value, sign = '+'): Value {
  if (typeof left === 'string' && typeof right === 'string') {
    const text = left + right
    if (text.length > run.limits.characters) spendText(run, text.length)
    return text
  }
  if (typeof left === 'number' && typeof right === 'number') return arithmetic('+', left, right)
  run.language.refuse(left)
  run.language.refuse(right)
  const [first, second] = [textOf(left), textOf(right)]
  if (first !== undefined && second !== undefined) return addTexts(run, first, second)
  if (Array.isArray(left) && Array.isArray(right)) {
    spend(run, 8 * (left.length + right.length))
    return [...left, ...right]
  }
  if (left instanceof PythonTuple && right instanceof PythonTuple) {
    spend(run, 8 * (left.items.length + right.items.length))
    return new PythonTuple([...left.items, ...right.items])
  }
  return addNumbers([left, right], first !== undefined, sign)
}

function addNumbers([left, right]: readonly [Value, Value], isText: boolean, sign: string): Value {
  const [one, other] = [asNumber(left), asNumber(right)]
  if (one !== undefined && other !== undefined) return arithmetic('+', one, other)
  const sequence = isText ? 'str' : sequenceItems(left) ? typeName(left) : undefined
  if (sequence !== undefined) {
    return typeError(`can only concatenate ${sequence} (not "${typeName(right)}") to ${sequence}`)
  }
  return unsupported(sign, left, right)
}

function addTexts(run: Runtime, left: Text, right: Text): Text {
  spendText(run, sizeOf(left) + sizeOf(right))
  // markup escapes what is added to it, from either side
  const marked = [left, right].find(each => each instanceof PythonText && each.markup)
  if (marked === undefined) return joinTexts([left, right])
  return likeText(marked, joinTexts([admit(marked, left), admit(marked, right)]))
}

function unsupported(operator: string, left: Value, right: Value): never {
  const name = operator === '**' ? '** or pow()' : operator
  return typeError(
    `unsupported operand type(s) for ${name}: '${typeName(left)}' and '${typeName(right)}'`,
  )
}

/** Python's arithmetic, on numbers and on what else takes part in it; `sign` is how a failure names it. */
export function calculate(
  run: Runtime,
  operator: BinaryOperator,
  [left, right]: readonly [Value, Value],
  sign: string = operator,
): Value {
  const isBitwise = operator in BITWISE
  if (typeof left === 'number' && typeof right === 'number' && operator !== '**' && !isBitwise) {
    return arithmetic(operator as Operation, left, right)
  }
  if (operator === '+') return add(run, left, right, sign)
  if (operator === '%') {
    const format = textOf(left)
    if (format !== undefined) return formatPercent(run, format, right)
  }
  run.language.refuse(left)
  run.language.refuse(right)
  if (isBitwise || left instanceof PythonSet) return combine(run, operator, [left, right], sign)
  const [one, other] = [asNumber(left), asNumber(right)]
  if (one !== undefined && other !== undefined) {
    if (typeof one === 'bigint' || typeof other === 'bigint' || operator === '**') spend(run, 1000)
    return arithmetic(operator as Operation, one, other)
  }
  if (operator === '*') return repeat(run, [left, right], sign)
  return unsupported(sign, left, right)
}

function repeat(run: Runtime, [left, right]: readonly [Value, Value], sign: string): Value {
  const [sequence, count] = isRepeatable(left) ? [left, right] : [right, left]
  if (!isRepeatable(sequence)) return unsupported(sign, left, right)
  const times = asNumber(count)
  if (times === undefined || times instanceof PythonFloat || !Number.isInteger(Number(times))) {
    return typeError(`can't multiply sequence by non-int of type '${typeName(count)}'`)
  }
  if (typeof times === 'bigint' && BigInt.asIntN(64, times) !== times) {
    throw new PythonError('OverflowError', "cannot fit 'int' into an index-sized integer")
  }
  const repetitions = Math.max(0, Number(times))
  const text = textOf(sequence)
  if (text !== undefined) return repeatText(run, text, repetitions)
  const items = sequenceItems(sequence) as readonly Value[]
  const length = items.length * repetitions
  if (length > run.limits.characters) run.language.tooLong(run, length)
  spend(run, 8 * length)
  const repeated: Value[] = []
  for (let round = 0; round < repetitions; round++) repeated.push(...items)
  return Array.isArray(sequence) ? repeated : new PythonTuple(repeated)
}

const isRepeatable = (value: Value): boolean =>
  textOf(value) !== undefined || sequenceItems(value) !== undefined

function repeatText(run: Runtime, text: Text, times: number): Text {
  spendText(run, plain(text).length * times)
  if (typeof text === 'string') return text.repeat(times)
  return likeText(text, joinTexts(new Array<Text>(times).fill(text)))
}

const BITWISE: Readonly<Record<string, (left: bigint, right: bigint) => bigint>> = {
  '|': (left, right) => left | right,
  '&': (left, right) => left & right,
  '^': (left, right) => left ^ right,
  '<<': (left, right) => left << shiftOf(right),
  '>>': (left, right) => left >> shiftOf(right),
}

function shiftOf(count: bigint): bigint {
  if (count < 0n) throw new PythonError('ValueError', 'negative shift count')
  if (count > 20_000n) throw new PythonError('OverflowError', 'The shift is wider than 20000 bits.')
  return count
}

/** `|`, `&`, `^` and the shifts of ints, what sets and dicts make of them, and `-` of sets. */
function combine(
  run: Runtime,
  operator: BinaryOperator,
  [left, right]: readonly [Value, Value],
  sign: string,
): Value {
  if (left instanceof Map && right instanceof Map && operator === '|') {
    const merged = new Map<Value, Value>(left)
    for (const [key, value] of right) merged.set(run.language.find(merged, key) ?? key, value)
    return merged
  }
  if (left instanceof PythonSet && right instanceof PythonSet) {
    const items = combineSets(operator, left, right)
    if (items !== undefined) return new PythonSet(items)
  }
  const [one, other] = [asNumber(left), asNumber(right)]
  const work = BITWISE[operator]
  if (work === undefined || !isWhole(one) || !isWhole(other)) return unsupported(sign, left, right)
  const bits = toInt(work(BigInt(one), BigInt(other)))
  const areBooleans = typeof left === 'boolean' && typeof right === 'boolean'
  return areBooleans && operator !== '<<' && operator !== '>>' ? bits !== 0 : bits
}

const isWhole = (value: PythonNumber | undefined): value is number | bigint =>
  typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))

function combineSets(
  operator: BinaryOperator,
  { items: left }: PythonSet,
  { items: right }: PythonSet,
): PythonKey[] | undefined {
  const without = (from: readonly PythonKey[], other: readonly PythonKey[]): PythonKey[] => {
    const known = new Map(other.map(item => [item, true]))
    return from.filter(item => findKey(known, item) === undefined)
  }
  switch (operator) {
    case '|':
      return [...left, ...without(right, left)]
    case '-':
      return without(left, right)
    case '&':
      return without(left, without(left, right))
    case '^':
      return [...without(left, right), ...without(right, left)]
    default:
      return undefined
  }
}

/** Python's unary `+`, `-` and `~`. */
export function applySign(run: Runtime, operator: '+' | '-' | '~', value: Value): Value {
  run.language.refuse(value)
  const number = asNumber(value)
  if (number === undefined || (operator === '~' && !isWhole(number))) {
    return typeError(`bad operand type for unary ${operator}: '${typeName(value)}'`)
  }
  if (operator === '~') return invert(number as number | bigint)
  return operator === '-' ? negate(number) : number
}
