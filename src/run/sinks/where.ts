/** A value that a condition compares. */
export type WhereValue = string | number | boolean | null

/** Gives the value of a field; `null` if it has none. */
export type FieldReader<Item> = (item: Item) => WhereValue

/** The fields a condition may name. */
export interface WhereFields<Item> {
  readonly fields: Readonly<Record<string, FieldReader<Item>>>
  /** Fields with a free name behind a dot, such as `rewards.exact`. */
  readonly families: Readonly<Record<string, (item: Item, name: string) => WhereValue>>
}

/** A condition that cannot be read, with the place where reading stopped. */
export class WhereError extends Error {
  override name = 'WhereError'
}

type Evaluate<Item> = (item: Item) => WhereValue

interface Token {
  readonly kind: 'number' | 'text' | 'word' | 'sign' | 'end'
  readonly text: string
  readonly at: number
}

const longest = 2000
const comparisons = ['==', '!=', '<=', '>=', '<', '>', '='] as const
const pattern =
  /\s*(?:(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|'([^']*)'|"([^"]*)"|([A-Za-z_][\w.-]*)|(==|!=|<=|>=|&&|\|\||[=<>!()-]))/y

/**
 * Reads a condition such as `reward >= 1 and outcome == 'completed'`: comparisons of fields with
 * numbers and texts, joined by `and`, `or`, `not` and brackets. Nothing in it is ever run as code.
 */
export function readWhere<Item>(text: string, known: WhereFields<Item>): (item: Item) => boolean {
  if (text.length > longest) {
    throw new WhereError(`the condition has ${text.length} characters, more than ${longest}`)
  }
  const reader = makeReader(text, known)
  const evaluate = reader.either()
  reader.expectEnd()
  return item => evaluate(item) === true
}

function readTokens(text: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (text.slice(at).trim() !== '') {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (!match) throw new WhereError(`"${text}" cannot be read from character ${at + 1} on`)
    const [whole, number, single, double, word, sign] = match
    const start = at + whole.length - whole.trimStart().length
    if (number !== undefined) tokens.push({ kind: 'number', text: number, at: start })
    else if (word !== undefined) tokens.push({ kind: 'word', text: word, at: start })
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign, at: start })
    else tokens.push({ kind: 'text', text: single ?? double ?? '', at: start })
    at += whole.length
  }
  return [...tokens, { kind: 'end', text: 'the end', at: text.length }]
}

function makeReader<Item>(text: string, known: WhereFields<Item>) {
  const tokens = readTokens(text)
  let next = 0
  const peek = (): Token => tokens[next]!
  const takes = (...words: readonly string[]): boolean => {
    const { kind, text: word } = peek()
    if ((kind !== 'sign' && kind !== 'word') || !words.includes(word)) return false
    next++
    return true
  }
  const fail = (wanted: string): never => {
    const { text: word, at } = peek()
    throw new WhereError(`"${text}": expected ${wanted} at character ${at + 1}, found ${word}`)
  }

  function either(): Evaluate<Item> {
    let left = both()
    while (takes('or', '||')) left = joined(left, both(), true)
    return left
  }

  function both(): Evaluate<Item> {
    let left = negated()
    while (takes('and', '&&')) left = joined(left, negated(), false)
    return left
  }

  function negated(): Evaluate<Item> {
    if (!takes('not', '!')) return compared()
    const inner = negated()
    return item => inner(item) !== true
  }

  function compared(): Evaluate<Item> {
    const left = operand()
    const sign = comparisons.find(each => takes(each))
    if (!sign) return left
    const right = operand()
    return item => compare(sign, left(item), right(item))
  }

  function operand(): Evaluate<Item> {
    if (takes('(')) {
      const inner = either()
      if (!takes(')')) fail('a closing bracket')
      return inner
    }
    const isNegative = takes('-')
    const { kind, text: word } = peek()
    if (kind === 'number') {
      next++
      const value = Number(word) * (isNegative ? -1 : 1)
      return () => value
    }
    if (isNegative) return fail('a number after the minus')
    if (kind !== 'text' && kind !== 'word') return fail('a field, a number or a text')
    next++
    return kind === 'text' ? () => word : fieldNamed(word, known)
  }

  return {
    either,
    expectEnd() {
      if (peek().kind !== 'end') fail('and, or, a comparison or the end')
    },
  }
}

function joined<Item>(left: Evaluate<Item>, right: Evaluate<Item>, isOr: boolean): Evaluate<Item> {
  return isOr
    ? item => left(item) === true || right(item) === true
    : item => left(item) === true && right(item) === true
}

const constants: Readonly<Record<string, WhereValue>> = { true: true, false: false, null: null }

function fieldNamed<Item>(name: string, { fields, families }: WhereFields<Item>): Evaluate<Item> {
  if (Object.hasOwn(constants, name)) {
    const value = constants[name]!
    return () => value
  }
  if (Object.hasOwn(fields, name)) return fields[name]!
  const dot = name.indexOf('.')
  const family = name.slice(0, dot)
  if (dot > 0 && Object.hasOwn(families, family)) {
    const read = families[family]!
    return item => read(item, name.slice(dot + 1))
  }
  const names = [...Object.keys(fields), ...Object.keys(families).map(each => `${each}.NAME`)]
  throw new WhereError(`no field "${name}". Known: ${names.join(', ')}.`)
}

/** Values of different kinds are never equal and have no order; a missing value has none either. */
function compare(sign: (typeof comparisons)[number], left: WhereValue, right: WhereValue): boolean {
  if (sign === '==' || sign === '=') return left === right
  if (sign === '!=') return left !== right
  if (left === null || right === null || typeof left !== typeof right) return false
  switch (sign) {
    case '<':
      return left < right
    case '<=':
      return left <= right
    case '>':
      return left > right
    default:
      return left >= right
  }
}
