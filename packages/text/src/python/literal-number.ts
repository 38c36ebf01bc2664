import { PythonFloat, readInt } from './value.ts'

/** A number read from a text, or why there is none. */
export type NumberReading =
  | { readonly value: number | bigint | PythonFloat; readonly end: number }
  | { readonly problem: string }

const RADIX = /0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)/y
const DECIMAL =
  /(?:([0-9](?:_?[0-9])*)(\.(?:[0-9](?:_?[0-9])*)?)?|(\.[0-9](?:_?[0-9])*))([eE][-+]?[0-9](?:_?[0-9])*)?/y
const TRAILING = /[A-Za-z0-9_]/

/** Reads an unsigned number of Python's grammar: radix prefixes, underscores, fractions, exponents. */
export function readNumberLiteral(text: string, offset: number): NumberReading {
  RADIX.lastIndex = offset
  const radix = RADIX.exec(text)
  if (radix) return finish(text, RADIX.lastIndex, readInt(radix[0].replaceAll('_', '')))
  DECIMAL.lastIndex = offset
  const match = DECIMAL.exec(text)
  if (!match) return { problem: 'Expected a number' }
  const end = DECIMAL.lastIndex
  const digits = match[0].replaceAll('_', '')
  const [, whole, fraction, bare, exponent] = match
  if (fraction !== undefined || bare !== undefined || exponent !== undefined) {
    return finish(text, end, new PythonFloat(Number(digits)))
  }
  if (/^0+[1-9]/.test(whole ?? '')) {
    return { problem: 'An integer cannot begin with 0; octal numbers are written 0o17' }
  }
  return finish(text, end, readInt(digits))
}

function finish(text: string, end: number, value: number | bigint | PythonFloat): NumberReading {
  const next = text[end] ?? ''
  if (next === 'j' || next === 'J') return { problem: 'Complex numbers are not supported' }
  return TRAILING.test(next) ? { problem: `"${next}" cannot follow a number` } : { value, end }
}
