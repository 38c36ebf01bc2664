import { requireHashable, storeItem } from '../compare.ts'
import { negate } from '../number.ts'
import { type PythonDict, PythonFloat, PythonTuple, type PythonValue } from '../value.ts'
import type { Expression } from './syntax.ts'
import { SourceError } from './tokens.ts'

/** The value of an expression that is a literal; everything else is refused, nothing is evaluated. */
export function literalValue(expression: Expression): PythonValue {
  switch (expression.kind) {
    case 'constant':
      return expression.value
    case 'float':
      return new PythonFloat(expression.value)
    case 'list':
      return expression.items.map(literalValue)
    case 'tuple':
      return new PythonTuple(expression.items.map(literalValue))
    case 'dict':
      return dictOf(expression.pairs)
    case 'unary':
      return signed(expression)
    case 'call':
      if (expression.called.kind === 'name') throw notLiteral(`"${expression.called.name}"`)
      throw notLiteral('A call')
    case 'name':
      throw notLiteral(`"${expression.name}"`)
    default:
      throw notLiteral(`An expression (${expression.kind})`)
  }
}

const notLiteral = (what: string): SourceError => new SourceError(`${what} is not a literal`)

function dictOf(pairs: readonly (readonly [Expression | null, Expression])[]): PythonDict {
  const dict: PythonDict = new Map()
  for (const [key, value] of pairs) {
    if (key === null) throw notLiteral('A spread')
    storeItem(dict, requireHashable(literalValue(key)), literalValue(value))
  }
  return dict
}

function signed({ operator, value }: Extract<Expression, { kind: 'unary' }>): PythonValue {
  const number = literalValue(value)
  const isNumber = typeof number === 'number' || typeof number === 'bigint'
  if (isNumber || number instanceof PythonFloat) {
    if (operator === '-') return negate(number)
    if (operator === '+') return number
  }
  throw notLiteral(`An expression with ${operator}`)
}
