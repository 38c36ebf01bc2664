import { asNumber, isText, typeName } from '../compare.ts'
import { PythonError } from '../error.ts'
import { typeError, valueError } from '../methods/arguments.ts'
import { toDouble } from '../number.ts'
import { toWhole } from '../numbers.ts'
import { encodeAsciiRepr } from '../repr.ts'
import type { Runtime } from '../runtime.ts'
import { spendText } from '../runtime.ts'
import { admit, countCharacters, joinTexts, likeText, plain, sliceText } from '../text/text.ts'
import { PythonFloat, PythonSet, PythonText, PythonTuple, type Text, type Value } from '../value.ts'
import { floatDigits, intDigits, splitPrefix } from './digits.ts'
import { limitText, padText } from './specification.ts'

interface Conversion {
  readonly flags: string
  readonly width: number
  readonly precision: number | undefined
  readonly type: string
}

interface Formatter {
  readonly run: Runtime
  readonly values: readonly Value[]
  readonly mapping: Value | undefined
  readonly format: Text
  next: number
}

const DIRECTIVE = /%(?:\(([^)]*)\))?([-+ #0]*)(\*|[0-9]+)?(?:\.(\*|[0-9]*))?[hlL]?([\s\S])?/g

/** Python's `text % values`. */
export function formatPercent(run: Runtime, format: Text, input: Value): Text {
  const isMapping = canBeMapping(input)
  const formatter: Formatter = {
    run,
    values: input instanceof PythonTuple ? input.items : [input],
    mapping: isMapping ? input : undefined,
    format,
    next: 0,
  }
  const source = plain(format)
  const parts: Text[] = []
  let end = 0
  for (const match of source.matchAll(DIRECTIVE)) {
    parts.push(sliceText(format, end, match.index))
    parts.push(convert(formatter, match))
    end = match.index + match[0].length
  }
  parts.push(sliceText(format, end, source.length))
  if (formatter.next < formatter.values.length && !isMapping) {
    typeError('not all arguments converted during string formatting')
  }
  const text = joinTexts(parts)
  spendText(run, plain(text).length)
  return likeText(format, text)
}

/** Whether Python would look fields up in the value by their names. */
const canBeMapping = (value: Value): boolean =>
  typeof value === 'object' &&
  value !== null &&
  !(value instanceof PythonTuple || value instanceof PythonFloat) &&
  !(value instanceof PythonSet || value instanceof PythonText)

function take(formatter: Formatter): Value {
  const value = formatter.values[formatter.next++]
  return value === undefined ? typeError('not enough arguments for format string') : value
}

function takeCount(formatter: Formatter, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (text !== '*') return Number(text)
  const value = take(formatter)
  return typeof value === 'number' ? value : typeError('* wants int')
}

function convert(formatter: Formatter, match: RegExpMatchArray): Text {
  const [, key, flags = '', width, precision, type] = match
  if (type === undefined) valueError('incomplete format')
  if (match[0] === '%%') return '%'
  const wanted = takeCount(formatter, width)
  const conversion: Conversion = {
    flags: (wanted ?? 0) < 0 ? `${flags}-` : flags,
    width: Math.abs(wanted ?? 0),
    precision: takeCount(formatter, precision === '' ? '0' : precision),
    type,
  }
  if (key === undefined) return convertValue(formatter, take(formatter), conversion)
  if (formatter.mapping === undefined) typeError('format requires a mapping')
  if (!(formatter.mapping instanceof Map))
    return typeError('list indices must be integers or slices, not str')
  const known = formatter.run.language.find(formatter.mapping, key)
  if (known === undefined) throw new PythonError('KeyError', `'${key}'`)
  return convertValue(formatter, formatter.mapping.get(known) as Value, conversion)
}

function convertValue(formatter: Formatter, value: Value, conversion: Conversion): Text {
  const { run } = formatter
  const align = conversion.flags.includes('-') ? '<' : '>'
  const pad = (text: Text): Text =>
    padText(run, text, { width: conversion.width, fill: ' ', align })
  const { language } = run
  const { format } = formatter
  switch (conversion.type) {
    case 's': {
      const own = typeof format === 'string' || !isText(value) ? language.str(run, value) : value
      return pad(limitText(admit(format, own), conversion.precision))
    }
    case 'r':
      return pad(limitText(language.repr(run, value), conversion.precision))
    case 'a':
      return pad(limitText(encodeAsciiRepr(plain(language.repr(run, value))), conversion.precision))
    case 'c':
      return pad(toCharacter(value))
    default:
      return convertNumber(run, value, conversion)
  }
}

function toCharacter(value: Value): Text {
  if (isText(value) && countCharacters(plain(value)) === 1) return value
  const code = typeof value === 'boolean' ? Number(value) : value
  if (typeof code === 'bigint' || (typeof code === 'number' && Number.isInteger(code))) {
    if (code >= 0 && code <= 0x10ffff) return String.fromCodePoint(Number(code))
    throw new PythonError('OverflowError', '%c arg not in range(0x110000)')
  }
  return typeError('%c requires int or char')
}

const FLOAT_TYPES = /[eEfFgG]/
const INT_TYPES = /[dioxXu]/

function convertNumber(run: Runtime, value: Value, conversion: Conversion): string {
  const { type, flags, width } = conversion
  if (!FLOAT_TYPES.test(type) && !INT_TYPES.test(type)) {
    valueError(`unsupported format character '${type}' (0x${type.charCodeAt(0).toString(16)})`)
  }
  spendText(run, width + (conversion.precision ?? 0))
  const number = asNumber(value)
  if (number === undefined) {
    const wanted = FLOAT_TYPES.test(type)
      ? 'must be real number'
      : `%${type} format: a real number is required`
    typeError(`${wanted}, not ${typeName(value)}`)
  }
  const digits = FLOAT_TYPES.test(type)
    ? floatDigits(toDouble(number), { ...conversion, alternate: flags.includes('#') })
    : intDigitsOf(number, conversion)
  const isNegative =
    number instanceof PythonFloat ? number.value < 0 || Object.is(number.value, -0) : number < 0
  const sign = isNegative ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  return padNumber(sign, digits, { width, flags })
}

function padNumber(
  sign: string,
  digits: string,
  { width, flags }: { readonly width: number; readonly flags: string },
): string {
  const missing = Math.max(0, width - sign.length - digits.length)
  if (flags.includes('-')) return sign + digits + ' '.repeat(missing)
  if (!flags.includes('0')) return ' '.repeat(missing) + sign + digits
  const [prefix, rest] = splitPrefix(digits)
  return sign + prefix + '0'.repeat(missing) + rest
}

function intDigitsOf(number: number | bigint | PythonFloat, conversion: Conversion): string {
  const { type, flags, precision = 0 } = conversion
  if (number instanceof PythonFloat && /[oxX]/.test(type)) {
    typeError(`%${type} format: an integer is required, not float`)
  }
  const whole = toWhole(number)
  const radix = /[oxX]/.test(type) ? type : ''
  return intDigits(whole, {
    type: radix,
    precision: undefined,
    alternate: flags.includes('#'),
  }).padStart(precision, '0')
}
