import { TemplateSyntaxError } from '../error.ts'
import type { Token } from './lexer.ts'

/** A walk over the tokens of one template. */
export interface TokenStream {
  readonly source: string
  readonly tokens: readonly Token[]
  position: number
  /** How many expressions and statements are open around the current token. */
  depth: number
}

/** The token at hand. */
export const current = (stream: TokenStream): Token => stream.tokens[stream.position] as Token

/** The token after the one at hand. */
export const following = (stream: TokenStream): Token =>
  stream.tokens[Math.min(stream.position + 1, stream.tokens.length - 1)] as Token

/** Takes the token at hand. */
export function advance(stream: TokenStream): Token {
  const token = current(stream)
  if (token.kind !== 'end') stream.position++
  return token
}

/** Whether a token is this name. */
export const isName = (token: Token, name: string): boolean =>
  token.kind === 'name' && token.value === name

/** Whether the token at hand is this operator. */
export const isOperator = (stream: TokenStream, operator: string): boolean => {
  const token = current(stream)
  return token.kind === 'operator' && token.value === operator
}

/** Takes the token at hand if it is this name. */
export function takeName(stream: TokenStream, name: string): boolean {
  if (!isName(current(stream), name)) return false
  stream.position++
  return true
}

/** Takes the token at hand if it is this operator. */
export function takeOperator(stream: TokenStream, operator: string): boolean {
  if (!isOperator(stream, operator)) return false
  stream.position++
  return true
}

/** Stops with a sentence about the token at hand. */
export function fail(stream: TokenStream, problem: string, token = current(stream)): never {
  throw new TemplateSyntaxError(problem, stream.source, token.at)
}

/** What a token looks like to the author of the template. */
export function describe(token: Token): string {
  switch (token.kind) {
    case 'end':
      return 'end of template'
    case 'block-end':
      return 'end of statement block'
    case 'print-end':
      return 'end of print statement'
    default:
      return String(token.value)
  }
}

/** Takes the token at hand, which must be of this kind and, if given, value. */
export function expect(stream: TokenStream, kind: Token['kind'], value?: string): Token {
  const token = current(stream)
  if (token.kind === kind && (value === undefined || token.value === value)) {
    return advance(stream)
  }
  const wanted = value ?? describe({ kind, at: 0, value: kind } as Token)
  if (token.kind === 'end') fail(stream, `unexpected end of template, expected '${wanted}'.`)
  return fail(stream, `expected token '${wanted}', got '${describe(token)}'`)
}

/** Takes a name and gives its text. */
export const expectName = (stream: TokenStream): string => expect(stream, 'name').value as string

/** Deeper than any real template, and shallow enough for the stack. */
const MAXIMUM_DEPTH = 250

/** Reads one level deeper, within bounds. */
export function deeper<T>(stream: TokenStream, read: () => T): T {
  if (++stream.depth > MAXIMUM_DEPTH) fail(stream, 'the template nests too deeply')
  const value = read()
  stream.depth--
  return value
}
