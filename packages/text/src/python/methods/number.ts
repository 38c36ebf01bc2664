import { asNumber } from '../compare.ts'
import { PythonError } from '../error.ts'
import { decompose } from '../exact.ts'
import { toDouble } from '../number.ts'
import type { Method } from '../signature.ts'
import { method, signature } from '../signature.ts'
import { type PythonFloat, PythonTuple, toInt, type Value } from '../value.ts'

const whole = (value: Value): bigint => {
  const number = asNumber(value) as number | bigint
  return number < 0 ? -BigInt(number) : BigInt(number)
}

/** The methods of `int` and `bool`. */
export const INT_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  [
    'bit_length',
    method<Value>(signature('bit_length', '', false), self =>
      whole(self) === 0n ? 0 : whole(self).toString(2).length,
    ),
  ],
  [
    'bit_count',
    method<Value>(
      signature('bit_count', '', false),
      self => whole(self).toString(2).replaceAll('0', '').length,
    ),
  ],
  ['conjugate', method<Value>(signature('conjugate', '', false), self => asNumber(self) as Value)],
  [
    'as_integer_ratio',
    method<Value>(
      signature('as_integer_ratio', '', false),
      self => new PythonTuple<Value>([asNumber(self) as Value, 1]),
    ),
  ],
])

/** A float as a fraction in its lowest terms. */
function ratioOf(value: number): PythonTuple<Value> {
  if (!Number.isFinite(value)) {
    const [type, name] = Number.isNaN(value) ? ['ValueError', 'NaN'] : ['OverflowError', 'Infinity']
    throw new PythonError(type, `cannot convert ${name} to integer ratio`)
  }
  let { mantissa, exponent } = decompose(Math.abs(value))
  while (mantissa !== 0n && mantissa % 2n === 0n && exponent < 0) {
    mantissa /= 2n
    exponent++
  }
  if (mantissa === 0n) return new PythonTuple<Value>([0, 1])
  const over = exponent > 0 ? mantissa << BigInt(exponent) : mantissa
  const under = exponent < 0 ? 1n << BigInt(-exponent) : 1n
  return new PythonTuple<Value>([toInt(value < 0 ? -over : over), toInt(under)])
}

/** The methods of `float`. */
export const FLOAT_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  [
    'is_integer',
    method<PythonFloat>(signature('is_integer', '', false), self =>
      Number.isInteger(toDouble(self)),
    ),
  ],
  [
    'as_integer_ratio',
    method<PythonFloat>(signature('as_integer_ratio', '', false), self => ratioOf(toDouble(self))),
  ],
  ['conjugate', method<Value>(signature('conjugate', '', false), self => self)],
])
