import { toExponentialExactly, toFixedExactly } from '../number.ts'
import { formatFloat } from '../repr.ts'

/** The parts of a format specification that concern the digits of a number. */
export interface NumberFormat {
  /** A letter of Python's format language, or the empty string for none. */
  readonly type: string
  readonly precision: number | undefined
  /** Keep the point and trailing zeros, or write the prefix of a radix. */
  readonly alternate: boolean
}

const stripZeros = (text: string): string => text.replace(/\.?0+$/, '')

const exponentText = (exponent: number): string =>
  `e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`

function scientific(value: number, decimals: number, alternate: boolean): string {
  const { digits, exponent } = toExponentialExactly(value, decimals)
  const fraction = digits.slice(1)
  const point = fraction !== '' || alternate ? '.' : ''
  return digits[0] + point + fraction + exponentText(exponent)
}

function fixed(value: number, decimals: number, alternate: boolean): string {
  const text = toFixedExactly(Math.abs(value), decimals)
  return alternate && decimals === 0 ? `${text}.` : text
}

/** The general format: fixed or scientific, whichever Python's `g` picks. */
function general(value: number, format: NumberFormat, threshold = 0): string {
  const precision = Math.max(1, format.precision ?? 6)
  const { digits, exponent } = toExponentialExactly(value, precision - 1)
  if (exponent < -4 || exponent >= precision - threshold) {
    const mantissa = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : digits
    const short = format.alternate || digits.length === 1 ? mantissa : stripZeros(mantissa)
    return short + exponentText(exponent)
  }
  const text = fixed(value, precision - 1 - exponent, format.alternate)
  return format.alternate || !text.includes('.') ? text : stripZeros(text)
}

/** The digits of a float without its sign, in the format asked for. */
export function floatDigits(value: number, format: NumberFormat): string {
  const magnitude = Math.abs(value)
  if (!Number.isFinite(magnitude)) {
    const name = Number.isNaN(magnitude) ? 'nan' : 'inf'
    if (format.type === '%') return `${name}%`
    return /[EFG]/.test(format.type) ? name.toUpperCase() : name
  }
  const decimals = format.precision ?? 6
  switch (format.type) {
    case 'e':
      return scientific(magnitude, decimals, format.alternate)
    case 'E':
      return scientific(magnitude, decimals, format.alternate).toUpperCase()
    case 'f':
    case 'F':
      return fixed(magnitude, decimals, format.alternate)
    case '%':
      return `${fixed(magnitude * 100, decimals, format.alternate)}%`
    case 'G':
      return general(magnitude, format).toUpperCase()
    case '':
      return shortest(magnitude, format)
    default:
      return general(magnitude, format)
  }
}

function shortest(value: number, format: NumberFormat): string {
  if (format.precision === undefined) return formatFloat(value)
  // without a type, fixed notation keeps one digit behind the point and gives way one digit earlier
  const text = general(value, format, 1)
  return /[.e]/.test(text) ? text : `${text}.0`
}

const RADIX: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16, X: 16 }

/** The digits of an int without its sign, with the prefix of its radix if wanted. */
export function intDigits(value: number | bigint, format: NumberFormat): string {
  const text = value < 0 ? String(-value) : String(value)
  const radix = RADIX[format.type]
  if (radix === undefined) return text
  const digits = BigInt(text).toString(radix)
  const prefix = format.alternate ? `0${format.type}` : ''
  return prefix + (format.type === 'X' ? digits.toUpperCase() : digits)
}

/** The prefix of a radix, if there is one, and the digits behind it. */
export function splitPrefix(digits: string): readonly [string, string] {
  return /^0[boxX]/.test(digits) ? [digits.slice(0, 2), digits.slice(2)] : ['', digits]
}

/** How whole digits are put into groups, and how wide the number is to be with zeros before it. */
export interface Grouping {
  readonly grouping: string
  readonly size: number
  readonly width: number
}

const DECIMAL = /^([0-9]*)(.*)$/s
const HEXADECIMAL = /^([0-9a-fA-F]*)(.*)$/s

/** The whole digits of a number in groups; what follows them stays as it is. */
export function groupDigits(digits: string, { grouping, size, width }: Grouping): string {
  if (grouping === '') return digits
  const pattern = size === 4 ? HEXADECIMAL : DECIMAL
  const [, whole = '', rest = ''] = pattern.exec(digits) ?? []
  // infinities and what is not a number have no digits to group
  if (whole === '') return digits.padStart(width, '0')
  const room = width - rest.length
  const needed = room - Math.floor((room - 1) / (size + 1))
  return inGroups(whole.padStart(Math.max(0, needed), '0'), grouping, size) + rest
}

function inGroups(whole: string, grouping: string, size: number): string {
  const first = whole.length % size
  const groups = first > 0 ? [whole.slice(0, first)] : []
  for (let start = first; start < whole.length; start += size) {
    groups.push(whole.slice(start, start + size))
  }
  return groups.join(grouping)
}
