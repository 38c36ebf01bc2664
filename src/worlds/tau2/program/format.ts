import { asNumber, PythonFloat, toDouble } from '@espalier/text/python'
import { ProgramDate } from './dates.ts'
import { formatDate } from './library/strftime.ts'
import { codePoints, nameOf } from './operators.ts'
import { str } from './show.ts'
import {
  EnumMember,
  type Named,
  PythonError,
  plain,
  typeError,
  type Value,
  valueError,
} from './values.ts'

const SPEC = /^(?:(.)?([<>=^]))?([-+ ]?)(0?)(\d+)?(,)?(?:\.(\d+))?([a-zA-Z%])?$/su

/** Python's `format(value, spec)`. */
export function format(value: Value, spec: string): string {
  if (spec === '') return str(value)
  if (value instanceof ProgramDate) return formatDate(value, spec)
  const number = asNumber(plain(value))
  if (number === undefined && typeof value !== 'string') {
    if (value instanceof EnumMember) return formatText(str(value), spec)
    throw typeError(`unsupported format string passed to ${nameOf(value)}.__format__`)
  }
  return typeof value === 'string' ? formatText(value, spec) : formatNumber(value, spec)
}

function readSpec(spec: string, type: string): RegExpExecArray {
  const read = SPEC.exec(spec)
  if (read === null)
    throw valueError(`Invalid format specifier '${spec}' for object of type '${type}'`)
  return read
}

function formatText(text: string, spec: string): string {
  const [, fill = ' ', align = '<', sign, , width = '0', comma, digits, code = 's'] = readSpec(
    spec,
    'str',
  )
  if (code !== 's') throw valueError(`Unknown format code '${code}' for object of type 'str'`)
  if (comma) throw valueError("Cannot specify ',' with 's'.")
  if (sign) throw valueError('Sign not allowed in string format specifier')
  const cut = digits === undefined ? text : [...text].slice(0, Number(digits)).join('')
  return padded(cut, { fill, align, width: Number(width) })
}

/** Digits with a comma before every third from the end. */
function inThousands(digits: string): string {
  const first = digits.length % 3
  return [digits.slice(0, first), ...(digits.slice(first).match(/.{3}/g) ?? [])]
    .filter(part => part !== '')
    .join(',')
}

interface Padding {
  readonly fill: string
  readonly align: string
  readonly width: number
}

function padded(text: string, { fill, align, width }: Padding): string {
  const missing = Math.max(0, width - codePoints(text))
  if (align === '<') return text + fill.repeat(missing)
  if (align === '^') {
    return fill.repeat(Math.floor(missing / 2)) + text + fill.repeat(Math.ceil(missing / 2))
  }
  return fill.repeat(missing) + text
}

function formatNumber(value: Value, spec: string): string {
  const number = asNumber(plain(value)) as number | bigint | PythonFloat
  const type = nameOf(value)
  const [, fill, align = '>', sign = '', zero = '', width = '0', comma, digits, code] = readSpec(
    spec,
    type,
  )
  const body = numberBody(number, {
    code: code ?? '',
    type,
    ...(digits !== undefined && { digits: Number(digits) }),
  })
  const isNegative = body.startsWith('-')
  const unsigned = isNegative ? body.slice(1) : body
  const grouped = comma ? unsigned.replace(/^\d+/, inThousands) : unsigned
  const lead = isNegative ? '-' : sign === '-' ? '' : sign
  if (zero && align === '>') return lead + grouped.padStart(Number(width) - lead.length, '0')
  return padded(lead + grouped, { fill: fill ?? ' ', align, width: Number(width) })
}

interface Body {
  readonly code: string
  readonly type: string
  readonly digits?: number
}

function numberBody(number: number | bigint | PythonFloat, { code, type, digits }: Body): string {
  const isFloat = number instanceof PythonFloat
  if (code === 'f' || code === 'F') return fixed(toDouble(number), digits ?? 6)
  if (code === '%') return `${fixed(toDouble(number) * 100, digits ?? 6)}%`
  if ((code === 'd' || code === '') && !isFloat) return str(number)
  if (code === '' && isFloat && digits === undefined) return str(number)
  if (code === 'd' || code === 's')
    throw valueError(`Unknown format code '${code}' for object of type '${type}'`)
  throw new PythonError('ValueError', `The format code '${code}' is not read here`)
}

/** `toFixed`, but half to even on the exact value, as C prints it, and beyond 1e21 as well. */
function fixed(value: number, digits: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf'
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const magnitude = Math.abs(value)
  if (magnitude >= 1e21)
    return `${sign}${BigInt(magnitude)}${digits > 0 ? `.${'0'.repeat(digits)}` : ''}`
  const text = magnitude.toFixed(digits)
  const scaled = magnitude * 10 ** digits
  // JavaScript takes exact ties up, C to the even neighbour.
  const isTie =
    digits < 20 && scaled < 2 ** 52 && scaled % 1 === 0.5 && (magnitude * 2 ** 20) % 1 === 0
  if (!isTie || Math.floor(scaled) % 2 !== 0) return sign + text
  return sign + (Math.floor(scaled) / 10 ** digits).toFixed(digits)
}

/** Python's `text.format(…)`, with plain names and places. */
export function formatFields(text: string, given: readonly Value[], named: Named): string {
  let next = 0
  return text.replace(
    /\{\{|\}\}|\{(\w*)(?::([^{}]*))?\}/g,
    (whole, name: string | undefined, spec = '') => {
      if (name === undefined) return whole[0] as string
      const place = name === '' ? next++ : /^\d+$/.test(name) ? Number(name) : undefined
      const value = place === undefined ? named.get(name) : given[place]
      if (value !== undefined) return format(value, spec)
      if (place === undefined) throw new PythonError('KeyError', `'${name}'`)
      throw new PythonError(
        'IndexError',
        `Replacement index ${place} out of range for positional args tuple`,
      )
    },
  )
}
