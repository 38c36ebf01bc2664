import { asNumber, type PythonNumber, toDouble } from '@espalier/text/python'
import { plain, type Value } from '../values.ts'
import { defineMethods } from './define.ts'

const doubleOf = (value: Value | undefined): number =>
  toDouble(asNumber(plain(value as Value)) as PythonNumber)

/** The methods of numbers. */
export const numberMethods = defineMethods({
  is_integer: ([number]) => Number.isInteger(doubleOf(number)),
})
