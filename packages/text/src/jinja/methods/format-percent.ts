import { asNumber } from '../../python/compare.ts'
import { PythonError } from '../../python/error.ts'
import { toDouble } from '../../python/number.ts'
import { PythonFloat, PythonTuple } from '../../python/value.ts'
import { escapeHtml } from '../filters/html.ts'
import { lookUp } from '../operations.ts'
import type { Run } from '../run.ts'
import { spendText } from '../run.ts'
import { printable, printableRepr, softText } from '../show.ts'
import { isMarkup, joinTexts, plain, sliceText, toMarkup } from '../text.ts'
import type { Text, Value } from '../value.ts'
import { isList, isText, typeError, typeOf, Undefined, valueError } from '../value.ts'
import { floatDigits, intDigits, splitPrefix } from './format-number.ts'
import { limitText, padText } from './format-spec.ts'

interface Conversion {
  readonly flags: string
  readonly width: number
  readonly precision: number | undefined
  readonly type: string
}

interface Formatter {
  readonly run: Run
  readonly values: readonly Value[]
  readonly mapping: Value | undefined
  readonly escapes: boolean
  next: number
}

const DIRECTIVE = /%(?:\(([^)]*)\))?([-+ #0]*)(\*|[0-9]+)?(?:\.(\*|[0-9]*))?[hlL]?([\s\S])?/g

/** Python's `text % values`. */
export function formatPercent(run: Run, format: Text, input: Value): Text {
  const isMapping = input instanceof Map || isList(input) || input instanceof Undefined
  const formatter: Formatter = {
    run,
    values: input instanceof PythonTuple ? input.items : [input],
    mapping: isMapping ? input : undefined,
    escapes: isMarkup(format),
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
  return formatter.escapes ? toMarkup(text) : text
}

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
  if (type === '%') return '%'
  const wanted = takeCount(formatter, width)
  const conversion: Conversion = {
    flags: (wanted ?? 0) < 0 ? `${flags}-` : flags,
    width: Math.abs(wanted ?? 0),
    precision: takeCount(formatter, precision === '' ? '0' : precision),
    type,
  }
  if (key === undefined) return convertValue(formatter, take(formatter), conversion)
  if (formatter.mapping === undefined) typeError('format requires a mapping')
  const value = formatter.mapping instanceof Map ? lookUp(formatter.mapping, key) : undefined
  if (value === undefined) throw new PythonError('KeyError', `'${key}'`)
  return convertValue(formatter, value, conversion)
}

function convertValue(formatter: Formatter, value: Value, conversion: Conversion): Text {
  const { run } = formatter
  const align = conversion.flags.includes('-') ? '<' : '>'
  const pad = (text: Text): Text =>
    padText(run, text, { width: conversion.width, fill: ' ', align })
  switch (conversion.type) {
    case 's':
      return pad(
        limitText(
          formatter.escapes ? escapeHtml(softText(run, value)) : printable(run, value),
          conversion.precision,
        ),
      )
    case 'r':
    case 'a':
      return pad(limitText(printableRepr(run, value), conversion.precision))
    case 'c':
      return pad(toCharacter(value))
    default:
      return convertNumber(run, value, conversion)
  }
}

function toCharacter(value: Value): Text {
  if (isText(value) && [...plain(value)].length === 1) return value
  if (typeof value === 'number' && Number.isInteger(value)) return String.fromCodePoint(value)
  return typeError('%c requires int or char')
}

const FLOAT_TYPES = /[eEfFgG]/
const INT_TYPES = /[dioxXu]/

function convertNumber(run: Run, value: Value, conversion: Conversion): string {
  const { type, flags, width } = conversion
  if (!FLOAT_TYPES.test(type) && !INT_TYPES.test(type)) {
    valueError(`unsupported format character '${type}'`)
  }
  spendText(run, width + (conversion.precision ?? 0))
  const number = asNumber(value)
  if (number === undefined) {
    const wanted = FLOAT_TYPES.test(type)
      ? 'must be real number'
      : `%${type} format: a real number is required`
    typeError(`${wanted}, not ${typeOf(value)}`)
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
  const whole = typeof number === 'bigint' ? number : Math.trunc(toDouble(number))
  const radix = /[oxX]/.test(type) ? type : ''
  return intDigits(whole, {
    type: radix,
    precision: undefined,
    alternate: flags.includes('#'),
  }).padStart(precision, '0')
}
