import { asNumber } from '../../python/compare.ts'
import { toDouble } from '../../python/number.ts'
import type { PythonFloat } from '../../python/value.ts'
import type { Method } from '../signature.ts'
import { method, signature } from '../signature.ts'
import type { Value } from '../value.ts'

const whole = (value: Value): bigint => {
  const number = asNumber(value) as number | bigint
  return number < 0 ? -BigInt(number) : BigInt(number)
}

/** The methods of `int` and `bool`. */
export const INT_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  [
    'bit_length',
    method(signature('bit_length', '', false), self =>
      whole(self) === 0n ? 0 : whole(self).toString(2).length,
    ),
  ],
  [
    'bit_count',
    method(
      signature('bit_count', '', false),
      self => whole(self).toString(2).replaceAll('0', '').length,
    ),
  ],
  ['conjugate', method(signature('conjugate', '', false), self => asNumber(self) as Value)],
])

/** The methods of `float`. */
export const FLOAT_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  [
    'is_integer',
    method<PythonFloat>(signature('is_integer', '', false), self =>
      Number.isInteger(toDouble(self)),
    ),
  ],
  ['conjugate', method(signature('conjugate', '', false), self => self)],
])
