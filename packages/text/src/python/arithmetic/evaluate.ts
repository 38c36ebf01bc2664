import { PythonError } from '../error.ts'
import { formatFloat } from '../repr.ts'
import { combine, type Quantity, raise, toDouble } from './numbers.ts'
import {
  type Argument,
  type Expression,
  type Operation,
  parseExpression,
  type Signed,
} from './syntax.ts'

/** The value of an expression: a bigint is an int, a number a float; the others print no result. */
export type ArithmeticValue = Quantity | 'tuple' | 'ellipsis' | 'complex'

type Value = ArithmeticValue

/** What Python's `eval` would make of an arithmetic expression, or the error it would raise. */
export function evaluateArithmetic(expression: string): ArithmeticValue {
  return evaluate(parseExpression(expression))
}

function typeOf(value: Value): string {
  if (typeof value === 'bigint') return 'int'
  return typeof value === 'number' ? 'float' : value
}

function typeError(message: string): PythonError {
  return new PythonError('TypeError', message)
}

/** Python's `float(value)` of a result. */
export function arithmeticDouble(value: ArithmeticValue): number {
  if (typeof value === 'string') {
    throw typeError(`float() argument must be a string or a real number, not '${value}'`)
  }
  return toDouble(value)
}

function evaluate(expression: Expression): Value {
  switch (expression.kind) {
    case 'int':
    case 'float':
      return expression.value
    case 'tuple':
    case 'ellipsis':
      return expression.kind
    case 'chain':
      return expression.rest.reduce(applyOperation, evaluate(expression.first))
    case 'powers':
      return evaluatePowers(expression.links)
    case 'call':
      return call(evaluate(expression.callee), expression.argument)
    default:
      return expression satisfies never
  }
}

/** A tower of powers: operands are evaluated from the left, powers taken from the right. */
function evaluatePowers(links: readonly Signed[]): Value {
  const operands = links.map(link => evaluate(link.operand))
  let result = operands.at(-1) as Value
  for (let index = links.length - 1; index >= 0; index--) {
    if (index < links.length - 1) result = power(operands[index] as Value, result)
    result = applySigns((links[index] as Signed).signs, result)
  }
  return result
}

/** The innermost sign comes last in the text and is applied first. */
function applySigns(signs: string, operand: Value): Value {
  if (signs === '' || operand === 'complex') return operand
  if (typeof operand === 'string') {
    throw typeError(`bad operand type for unary ${signs.at(-1)}: '${operand}'`)
  }
  let result = operand
  for (const sign of signs) if (sign === '-') result = -result
  return result
}

function applyOperation(left: Value, { operator, operand }: Operation): Value {
  const right = evaluate(operand)
  if (typeof left !== 'string' && typeof right !== 'string') return combine(operator, left, right)
  if (operator === '*' && (left === 'tuple' || right === 'tuple')) return repeat(left, right)
  if (operator === '+' && left === 'tuple') {
    if (right === 'tuple') return right
    throw typeError(`can only concatenate tuple (not "${typeOf(right)}") to tuple`)
  }
  if (isNumeric(left) && isNumeric(right) && operator !== '//') {
    if (operator === '/' && (right === 0n || right === 0)) {
      throw new PythonError('ZeroDivisionError', 'complex division by zero')
    }
    return 'complex'
  }
  throw unsupported(operator, left, right)
}

const isNumeric = (value: Value): boolean => typeof value !== 'string' || value === 'complex'

function unsupported(operator: string, left: Value, right: Value): PythonError {
  return typeError(
    `unsupported operand type(s) for ${operator}: '${typeOf(left)}' and '${typeOf(right)}'`,
  )
}

function repeat(left: Value, right: Value): Value {
  const count = left === 'tuple' ? right : left
  if (typeof count !== 'bigint') {
    throw typeError(`can't multiply sequence by non-int of type '${typeOf(count)}'`)
  }
  if (BigInt.asIntN(64, count) !== count) {
    throw new PythonError('OverflowError', "cannot fit 'int' into an index-sized integer")
  }
  return 'tuple'
}

function power(base: Value, exponent: Value): Value {
  if (typeof base !== 'string' && typeof exponent !== 'string') return raise(base, exponent)
  if (!isNumeric(base) || !isNumeric(exponent)) throw unsupported('** or pow()', base, exponent)
  if (base === 0n || base === 0) {
    throw new PythonError('ZeroDivisionError', '0.0 to a negative or complex power')
  }
  return 'complex'
}

/** Nothing here can be called; Python finds out only after evaluating the argument. */
function call(callee: Value, argument: Argument): Value {
  if (argument.kind !== 'none') {
    const value = evaluate(argument.value)
    if (argument.kind === 'starred' && value !== 'tuple') {
      throw starError(callee, '*', 'an iterable', value)
    }
    if (argument.kind === 'double-starred') throw starError(callee, '**', 'a mapping', value)
  }
  throw typeError(`'${typeOf(callee)}' object is not callable`)
}

const PRINTED = { tuple: '()', ellipsis: 'Ellipsis', complex: 'complex' } as const

function starError(callee: Value, stars: string, wanted: string, value: Value): PythonError {
  const name =
    typeof callee === 'string'
      ? PRINTED[callee]
      : typeof callee === 'bigint'
        ? callee.toString()
        : formatFloat(callee)
  return typeError(`${name} argument after ${stars} must be ${wanted}, not ${typeOf(value)}`)
}
