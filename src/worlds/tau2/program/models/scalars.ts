import { asNumber, PythonFloat, readFloat, readInt, toDouble } from '@espalier/text/python'
import { ProgramDate } from '../dates.ts'
import { readIso } from '../library/datetime.ts'
import { plain, unwrap, type Value } from '../values.ts'
import { type Refusal, refuse } from './refusal.ts'

/** Takes a value for a field of some type, changed where pydantic changes it, or refuses it. */
export type Check = (value: Value) => Value | Refusal

const text: Check = value => {
  const known = unwrap(value)
  return typeof known === 'string'
    ? known
    : refuse('string_type', 'Input should be a valid string', value)
}

const INT_TEXT = /^\s*[-+]?\d+(?:_\d+)*(?:\.0+)?\s*$/

const int: Check = value => {
  const known = unwrap(value)
  if (typeof known === 'boolean') return known ? 1 : 0
  if (typeof known === 'number' || typeof known === 'bigint') return known
  if (known instanceof PythonFloat) return intOfFloat(known.value, value)
  if (typeof known !== 'string') return refuse('int_type', 'Input should be a valid integer', value)
  if (!INT_TEXT.test(known)) {
    return refuse(
      'int_parsing',
      'Input should be a valid integer, unable to parse string as an integer',
      value,
    )
  }
  return readInt(known.trim().replaceAll('_', '').replace(/\.0+$/, '').replace(/^\+/, ''))
}

function intOfFloat(value: number, input: Value): Value | Refusal {
  if (!Number.isFinite(value))
    return refuse('finite_number', 'Input should be a finite number', input)
  if (!Number.isInteger(value)) {
    return refuse(
      'int_from_float',
      'Input should be a valid integer, got a number with a fractional part',
      input,
    )
  }
  return Number.isSafeInteger(value) ? value + 0 : BigInt(value)
}

const float: Check = value => {
  const known = unwrap(value)
  if (known instanceof PythonFloat) return known
  const number = asNumber(plain(known))
  if (number !== undefined) return new PythonFloat(toDouble(number))
  if (typeof known !== 'string')
    return refuse('float_type', 'Input should be a valid number', value)
  const read = readFloat(known)
  if (read !== undefined) return new PythonFloat(read)
  return refuse(
    'float_parsing',
    'Input should be a valid number, unable to parse string as a number',
    value,
  )
}

const YES = new Set(['1', 'on', 't', 'true', 'y', 'yes'])
const NO = new Set(['0', 'off', 'f', 'false', 'n', 'no'])

const bool: Check = value => {
  const known = unwrap(value)
  if (typeof known === 'boolean') return known
  const number = asNumber(plain(known))
  if (number !== undefined) {
    const double = toDouble(number)
    if (double === 0 || double === 1) return double === 1
  }
  const word = typeof known === 'string' ? known.toLowerCase() : ''
  if (YES.has(word) || NO.has(word)) return YES.has(word)
  return typeof known === 'string' || number !== undefined
    ? refuse('bool_parsing', 'Input should be a valid boolean, unable to interpret input', value)
    : refuse('bool_type', 'Input should be a valid boolean', value)
}

const date: Check = value => {
  const known = unwrap(value)
  if (known instanceof ProgramDate) {
    const isDay = known.at % 86_400_000 === 0
    if (isDay) return new ProgramDate(known.at, false)
    return refuse(
      'date_from_datetime_inexact',
      'Datetimes provided to dates should have zero time - e.g. be exact dates',
      value,
    )
  }
  const read = typeof known === 'string' ? readIso(known, false) : undefined
  return read ?? refuse('date_type', 'Input should be a valid date', value)
}

const datetime: Check = value => {
  const known = unwrap(value)
  if (known instanceof ProgramDate) return new ProgramDate(known.at, true)
  const read = typeof known === 'string' ? readIso(known, true) : undefined
  return read ?? refuse('datetime_type', 'Input should be a valid datetime', value)
}

/** The checks of Python's own types, by their names. */
export const scalarChecks: ReadonlyMap<string, Check> = new Map([
  ['str', text],
  ['int', int],
  ['float', float],
  ['bool', bool],
  ['date', date],
  ['datetime', datetime],
])
