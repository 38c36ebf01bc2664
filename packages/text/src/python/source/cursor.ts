import { SourceError, type Token } from './tokens.ts'

/** The tokens of a source and how far they have been read. */
export class Cursor {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  get token(): Token {
    return this.#tokens[this.#at] as Token
  }

  next(): Token {
    return this.#tokens[this.#at++] as Token
  }

  /** The text of a name, an operator or a mark of the layout. */
  get text(): string {
    const { token } = this
    return token.kind === 'name' || token.kind === 'operator' ? token.text : ''
  }

  peek(ahead: number): Token | undefined {
    return this.#tokens[this.#at + ahead]
  }

  is(text: string): boolean {
    return this.text === text
  }

  accept(text: string): boolean {
    if (this.text !== text) return false
    this.#at++
    return true
  }

  expect(text: string): void {
    if (!this.accept(text)) throw this.error(`expected "${text}"`)
  }

  name(): string {
    const { token } = this
    if (token.kind !== 'name') throw this.error('expected a name')
    this.#at++
    return token.text
  }

  isAt(kind: Token['kind']): boolean {
    return this.token.kind === kind
  }

  layout(kind: 'newline' | 'indent' | 'dedent'): void {
    if (this.token.kind !== kind) throw this.error(`expected ${kind}`)
    this.#at++
  }

  error(problem: string): SourceError {
    const { token } = this
    return new SourceError(`Line ${token.line}: ${problem}, found ${this.text || token.kind}`)
  }
}
