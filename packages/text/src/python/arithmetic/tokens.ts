import { PythonError } from '../error.ts'

/** A lexical piece of an expression; `end` closes every list of tokens. */
export type Token =
  | { readonly kind: 'int'; readonly value: bigint; readonly depth: number }
  | { readonly kind: 'float'; readonly value: number; readonly depth: number }
  | { readonly kind: 'symbol'; readonly text: string; readonly depth: number }
  | { readonly kind: 'end'; readonly depth: number }

/** CPython's own limits: nesting of parentheses, and digits of an integer literal. */
const MAXIMUM_DEPTH = 200
const MAXIMUM_DIGITS = 4300

/** A syntax error with the place that `eval` adds to every one of them. */
export function syntaxError(message: string, line = 1): PythonError {
  return new PythonError('SyntaxError', `${message} (<string>, line ${line})`)
}

const NUMBER = /(?:\d+\.?\d*|\.\d+)/y
const SYMBOL = /\.\.\.|\*\*|\/\/|[-+*/().]/y

/**
 * Splits an expression over digits, operators, parentheses, points and spaces as Python does. A
 * problem of a token outranks every problem of the grammar, so the whole text is read first.
 */
export function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = []
  let depth = 0
  let position = 0
  while (position < text.length) {
    if (text[position] === ' ') {
      position++
      continue
    }
    const number = match(NUMBER, text, position)
    const symbol = number ?? match(SYMBOL, text, position)
    if (symbol === undefined) throw syntaxError('invalid syntax')
    position += symbol.length
    if (number === undefined) {
      depth = depthAfter(symbol, depth)
      tokens.push({ kind: 'symbol', text: symbol, depth })
    } else {
      tokens.push(numberToken(number, depth))
    }
  }
  tokens.push({ kind: 'end', depth })
  return tokens
}

function match(pattern: RegExp, text: string, position: number): string | undefined {
  pattern.lastIndex = position
  return pattern.exec(text)?.[0]
}

function depthAfter(symbol: string, depth: number): number {
  if (symbol === '(') {
    if (depth >= MAXIMUM_DEPTH) throw syntaxError('too many nested parentheses')
    return depth + 1
  }
  if (symbol !== ')') return depth
  if (depth === 0) throw syntaxError("unmatched ')'")
  return depth - 1
}

function numberToken(text: string, depth: number): Token {
  if (text.includes('.')) return { kind: 'float', value: Number(text), depth }
  if (text[0] === '0' && /[1-9]/.test(text)) {
    throw syntaxError(
      'leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers',
    )
  }
  if (text.length > MAXIMUM_DIGITS) {
    throw syntaxError(
      `Exceeds the limit (${MAXIMUM_DIGITS} digits) for integer string conversion: value has ${text.length} digits; use sys.set_int_max_str_digits() to increase the limit - Consider hexadecimal for huge integer literals to avoid decimal conversion limits.`,
    )
  }
  return { kind: 'int', value: BigInt(text), depth }
}
