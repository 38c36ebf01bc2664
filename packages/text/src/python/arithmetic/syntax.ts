import { syntaxError, type Token, tokenize } from './tokens.ts'

/** A parsed expression; a call is kept because Python parses `2(3)` and only then refuses it. */
export type Expression =
  | { readonly kind: 'int'; readonly value: bigint }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'tuple' }
  | { readonly kind: 'ellipsis' }
  | { readonly kind: 'chain'; readonly first: Expression; readonly rest: readonly Operation[] }
  | { readonly kind: 'powers'; readonly links: readonly Signed[] }
  | { readonly kind: 'call'; readonly callee: Expression; readonly argument: Argument }

/** One step of a left-associative chain such as `1 + 2 - 3`. */
export interface Operation {
  readonly operator: string
  readonly operand: Expression
}

/** A link of a tower of powers, such as the `-2` in `3**-2**4`; a lone signed operand is one link. */
export interface Signed {
  readonly signs: string
  readonly operand: Expression
}

/** What stands between the parentheses of a call; without commas there is at most one argument. */
export type Argument =
  | { readonly kind: 'none' }
  | { readonly kind: 'plain' | 'starred' | 'double-starred'; readonly value: Expression }

/** Parses an expression, or raises the syntax error that Python 3.11 would. */
export function parseExpression(text: string): Expression {
  const tokens = tokenize(text)
  if (tokens.length === 1) throw syntaxError('invalid syntax', 0)
  // Like CPython's parser: a fast pass, then on failure a second one that looks for a better message.
  const parsed = new Parser(tokens, false).whole() ?? new Parser(tokens, true).whole()
  if (parsed === undefined) throw syntaxError('invalid syntax')
  return parsed
}

/** A packrat-like parser over tokens: methods give `undefined` and restore the position on failure. */
class Parser {
  readonly #tokens: readonly Token[]
  #explain: boolean
  #position = 0

  constructor(tokens: readonly Token[], explain: boolean) {
    this.#tokens = tokens
    this.#explain = explain
  }

  whole(): Expression | undefined {
    const expression = this.#expression()
    return expression !== undefined && this.#peek().kind === 'end' ? expression : undefined
  }

  /** Looking at the end of the text with a parenthesis open is the error itself, as in CPython. */
  #peek(): Token {
    const token = this.#tokens[this.#position] as Token
    if (token.kind === 'end' && token.depth > 0) throw syntaxError("'(' was never closed")
    return token
  }

  #symbol(): string | undefined {
    const token = this.#peek()
    return token.kind === 'symbol' ? token.text : undefined
  }

  #accept(text: string): boolean {
    if (this.#symbol() !== text) return false
    this.#position++
    return true
  }

  /** A place where Python expects a whole expression, and so where it notices a missing comma. */
  #expression(): Expression | undefined {
    const expression = this.#chain('sum')
    if (this.#explain && expression !== undefined) this.#noticeNeighbour()
    return expression
  }

  #noticeNeighbour(): void {
    const start = this.#position
    this.#explain = false
    const neighbour = this.#chain('sum')
    this.#explain = true
    const last = this.#tokens[this.#position - 1] as Token
    this.#position = start
    if (neighbour !== undefined && last.depth > 0) {
      throw syntaxError('invalid syntax. Perhaps you forgot a comma?')
    }
  }

  #chain(level: 'sum' | 'term'): Expression | undefined {
    const first = this.#operand(level)
    if (first === undefined) return undefined
    const rest: Operation[] = []
    for (;;) {
      const operator = this.#symbol()
      if (operator === undefined || !OPERATORS[level].includes(operator)) break
      const start = this.#position++
      const operand = this.#operand(level)
      if (operand === undefined) {
        this.#position = start
        break
      }
      rest.push({ operator, operand })
    }
    return rest.length === 0 ? first : { kind: 'chain', first, rest }
  }

  #operand(level: 'sum' | 'term'): Expression | undefined {
    return level === 'sum' ? this.#chain('term') : this.#factor()
  }

  /** Signs and powers, without recursion: `-2**-3**4` is `-(2**(-(3**4)))`. */
  #factor(): Expression | undefined {
    const links: Signed[] = []
    const start = this.#position
    let end = start
    do {
      const signs = this.#signs()
      const operand = this.#primary()
      // A `**` without a right side is left for the caller, which reports the error.
      if (operand === undefined) break
      links.push({ signs, operand })
      end = this.#position
    } while (this.#accept('**'))
    this.#position = end
    if (links.length > 1 || links[0]?.signs) return { kind: 'powers', links }
    return links[0]?.operand
  }

  #signs(): string {
    let signs = ''
    for (let sign = this.#symbol(); sign === '+' || sign === '-'; sign = this.#symbol()) {
      signs += sign
      this.#position++
    }
    return signs
  }

  #primary(): Expression | undefined {
    let primary = this.#atom()
    while (primary !== undefined && this.#symbol() === '(') {
      const start = this.#position
      const argument = this.#argument()
      if (argument === undefined) {
        this.#position = start
        break
      }
      // The first call always fails, so those that follow it need not be kept.
      if (primary.kind !== 'call') primary = { kind: 'call', callee: primary, argument }
    }
    if (primary !== undefined) this.#lookForName()
    return primary
  }

  /** After a point Python looks for a name; none can be written here, but the end may be in sight. */
  #lookForName(): void {
    if (!this.#accept('.')) return
    this.#peek()
    this.#position--
  }

  #argument(): Argument | undefined {
    this.#position++
    if (this.#accept(')')) return { kind: 'none' }
    const kind = this.#accept('*') ? 'starred' : this.#accept('**') ? 'double-starred' : 'plain'
    const value = this.#expression()
    return value !== undefined && this.#accept(')') ? { kind, value } : undefined
  }

  #atom(): Expression | undefined {
    const token = this.#peek()
    if (token.kind === 'int' || token.kind === 'float') {
      this.#position++
      return token
    }
    if (this.#accept('...')) return { kind: 'ellipsis' }
    if (this.#symbol() !== '(') return undefined
    const start = this.#position++
    const group = this.#group()
    if (group === undefined) this.#position = start
    return group
  }

  #group(): Expression | undefined {
    if (this.#accept(')')) return { kind: 'tuple' }
    const start = this.#position
    const inner = this.#expression()
    if (inner !== undefined) return this.#accept(')') ? inner : undefined
    this.#position = start
    if (this.#accept('*')) this.#refuseStars('starred')
    else if (this.#explain && this.#accept('**')) this.#refuseStars('double starred')
    return undefined
  }

  #refuseStars(stars: string): void {
    const inner = this.#expression()
    if (inner === undefined || !this.#accept(')') || !this.#explain) return
    throw syntaxError(`cannot use ${stars} expression here`)
  }
}

const OPERATORS = { sum: ['+', '-'], term: ['*', '/', '//'] }
