import type { Decide, RunFrame } from '../frame.ts'
import { isEqual, isIn, isOrdered, isTrue } from '../operations.ts'
import type { Comparison, ComparisonOperator, Expression } from '../parse/syntax.ts'
import type { Value } from '../value.ts'
import { compileTest } from './compile-call.ts'
import { compileExpression } from './compile-expression.ts'
import { compileFind } from './compile-member.ts'
import type { CompilePlace } from './place.ts'

/** Compiles an expression of which only the truth counts. */
export function compileCondition(place: CompilePlace, expression: Expression): Decide {
  switch (expression.kind) {
    case 'unary':
      if (expression.operator === 'not') {
        const value = compileCondition(place, expression.value)
        return frame => !value(frame)
      }
      break
    case 'and': {
      const left = compileCondition(place, expression.left)
      const right = compileCondition(place, expression.right)
      return frame => left(frame) && right(frame)
    }
    case 'or': {
      const left = compileCondition(place, expression.left)
      const right = compileCondition(place, expression.right)
      return frame => left(frame) || right(frame)
    }
    case 'comparison':
      return compileComparison(place, expression.left, expression.chain)
    case 'test':
      return compileTest(place, expression)
  }
  const find = compileFind(place, expression)
  return frame => {
    const value = find(frame)
    return value !== undefined && isTrue(value)
  }
}

function compileComparison(
  place: CompilePlace,
  first: Expression,
  chain: readonly Comparison[],
): Decide {
  const [only] = chain
  if (chain.length === 1 && only) return compileSingle(place, first, only)
  const left = compileExpression(place, first)
  const links = chain.map(link => [link.operator, compileExpression(place, link.value)] as const)
  return frame => {
    let before = left(frame)
    for (const [operator, value] of links) {
      const after = value(frame)
      if (!holds(frame, operator, [before, after])) return false
      before = after
    }
    return true
  }
}

function compileSingle(place: CompilePlace, first: Expression, comparison: Comparison): Decide {
  const { operator, value } = comparison
  const isText = value.kind === 'constant' && typeof value.value === 'string'
  if (isText && (operator === '==' || operator === '!=')) {
    const wanted = value.value as string
    const find = compileFind(place, first)
    if (operator === '==') return frame => equalsText(frame, find(frame), wanted)
    return frame => !equalsText(frame, find(frame), wanted)
  }
  const left = compileExpression(place, first)
  const right = compileExpression(place, comparison.value)
  switch (operator) {
    case '==':
      return frame => isEqual(frame.run, left(frame), right(frame))
    case '!=':
      return frame => !isEqual(frame.run, left(frame), right(frame))
    case 'in':
      return frame => isIn(frame.run, left(frame), right(frame))
    case 'not in':
      return frame => !isIn(frame.run, left(frame), right(frame))
    default:
      return frame => isOrdered(frame.run, operator, [left(frame), right(frame)])
  }
}

/** Whether a value is this text; one that is not there is no text. */
const equalsText = (frame: RunFrame, value: Value | undefined, wanted: string): boolean =>
  typeof value === 'string'
    ? value === wanted
    : value !== undefined && isEqual(frame.run, value, wanted)

function holds(
  frame: RunFrame,
  operator: ComparisonOperator,
  values: readonly [Value, Value],
): boolean {
  const [left, right] = values
  switch (operator) {
    case '==':
      return isEqual(frame.run, left, right)
    case '!=':
      return !isEqual(frame.run, left, right)
    case 'in':
      return isIn(frame.run, left, right)
    case 'not in':
      return !isIn(frame.run, left, right)
    default:
      return isOrdered(frame.run, operator, values)
  }
}
