import { joinTexts, sizeOf } from '../../python/text/text.ts'
import { PythonTuple } from '../../python/value.ts'
import { getSlice } from '../access.ts'
import { fromEntries } from '../dict.ts'
import type { Evaluate } from '../frame.ts'
import { add, applySign, calculate, isTrue } from '../operations.ts'
import type { Expression } from '../parse/syntax.ts'
import { spendText } from '../run.ts'
import { printable } from '../show.ts'
import type { Text, Value } from '../value.ts'
import { Undefined } from '../value.ts'
import { compileCall, compileFilter, compileTest } from './compile-call.ts'
import { compileCondition } from './compile-condition.ts'
import { compileAttribute, compileItem, compileName } from './compile-member.ts'
import type { CompilePlace } from './place.ts'

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>

/** Compiles an expression to a closure. */
export function compileExpression(place: CompilePlace, expression: Expression): Evaluate {
  place.template.cost++
  switch (expression.kind) {
    case 'constant': {
      const { value } = expression
      return () => value
    }
    case 'name':
      return compileName(place, expression)
    case 'attribute':
      return compileAttribute(place, expression)
    case 'item':
      return compileItem(place, expression)
    case 'slice':
      return compileSlice(place, expression)
    case 'call':
      return compileCall(place, expression)
    case 'filter':
      return compileFilter(place, expression)
    case 'test':
      return compileTest(place, expression)
    case 'comparison':
      return compileCondition(place, expression)
    case 'and':
    case 'or':
      return compileLogic(place, expression)
    default:
      return compileMaking(place, expression)
  }
}

type Making = Of<
  'tuple' | 'list' | 'dict' | 'unary' | 'arithmetic' | 'concatenation' | 'conditional'
>

function compileMaking(place: CompilePlace, expression: Making): Evaluate {
  switch (expression.kind) {
    case 'tuple': {
      const items = compileAll(place, expression.items)
      return frame => new PythonTuple(items.map(item => item(frame)))
    }
    case 'list': {
      const items = compileAll(place, expression.items)
      const constants = constantValues(expression.items)
      // nothing can change a list once it is made
      if (constants) return () => constants
      return frame => items.map(item => item(frame))
    }
    case 'dict':
      return compileDict(place, expression)
    case 'unary':
      return compileUnary(place, expression)
    case 'arithmetic':
      return compileArithmetic(place, expression)
    case 'concatenation':
      return compileConcatenation(place, expression)
    case 'conditional':
      return compileConditional(place, expression)
  }
}

/** The values of expressions that are all constants. */
export function constantValues(expressions: readonly Expression[]): readonly Value[] | undefined {
  const values: Value[] = []
  for (const expression of expressions) {
    if (expression.kind !== 'constant') return undefined
    values.push(expression.value)
  }
  return values
}

/** Compiles expressions one by one. */
export const compileAll = (place: CompilePlace, expressions: readonly Expression[]): Evaluate[] =>
  expressions.map(expression => compileExpression(place, expression))

function compileSlice(place: CompilePlace, expression: Of<'slice'>): Evaluate {
  const object = compileExpression(place, expression.object)
  const nothing: Evaluate = () => null
  const [start, stop, step] = [0, 1, 2].map(index => {
    const bound = expression.bounds[index]
    return bound ? compileExpression(place, bound) : nothing
  }) as [Evaluate, Evaluate, Evaluate]
  return frame => {
    const sliced = object(frame)
    return getSlice(frame.run, sliced, [start(frame), stop(frame), step(frame)])
  }
}

function compileLogic(place: CompilePlace, expression: Of<'and' | 'or'>): Evaluate {
  const left = compileExpression(place, expression.left)
  const right = compileExpression(place, expression.right)
  if (expression.kind === 'and') {
    return frame => {
      const value = left(frame)
      return isTrue(value) ? right(frame) : value
    }
  }
  return frame => {
    const value = left(frame)
    return isTrue(value) ? value : right(frame)
  }
}

function compileDict(place: CompilePlace, expression: Of<'dict'>): Evaluate {
  const pairs = expression.pairs.map(
    ([key, value]) => [compileExpression(place, key), compileExpression(place, value)] as const,
  )
  return frame =>
    fromEntries(pairs.map(([key, value]): [Value, Value] => [key(frame), value(frame)]))
}

function compileUnary(place: CompilePlace, expression: Of<'unary'>): Evaluate {
  const { operator } = expression
  if (operator === 'not') return compileCondition(place, expression)
  const value = compileExpression(place, expression.value)
  return frame => applySign(frame.run, operator, value(frame))
}

function compileArithmetic(place: CompilePlace, expression: Of<'arithmetic'>): Evaluate {
  const { operator } = expression
  if (operator === '+') return compileSum(place, expression)
  const left = compileExpression(place, expression.left)
  const right = compileExpression(place, expression.right)
  return frame => calculate(frame.run, operator, [left(frame), right(frame)])
}

/** Compiles `a + b + c …` as one walk over the terms. */
function compileSum(place: CompilePlace, expression: Of<'arithmetic'>): Evaluate {
  const terms: Expression[] = []
  let first: Expression = expression
  while (first.kind === 'arithmetic' && first.operator === '+') {
    terms.push(first.right)
    first = first.left
  }
  place.template.cost += terms.length - 1
  const start = compileExpression(place, first)
  const rest = compileAll(place, joinConstants(terms.reverse()))
  return frame => {
    let sum = start(frame)
    for (let index = 0; index < rest.length; index++) {
      const term = (rest[index] as Evaluate)(frame)
      const isPlain = typeof sum === 'string' && typeof term === 'string'
      sum = isPlain ? (sum as string) + (term as string) : add(frame.run, sum, term)
    }
    if (typeof sum === 'string' && sum.length > frame.run.limits.characters) {
      spendText(frame.run, sum.length)
    }
    return sum
  }
}

/** Terms of a sum with texts that follow each other made one: what takes the first takes both. */
function joinConstants(terms: readonly Expression[]): readonly Expression[] {
  const joined: Expression[] = []
  for (const term of terms) {
    const before = joined.at(-1)
    if (isConstantText(term) && before && isConstantText(before)) {
      joined[joined.length - 1] = { ...before, value: before.value + term.value }
    } else joined.push(term)
  }
  return joined
}

const isConstantText = (
  expression: Expression,
): expression is Of<'constant'> & { readonly value: string } =>
  expression.kind === 'constant' && typeof expression.value === 'string'

function compileConcatenation(place: CompilePlace, expression: Of<'concatenation'>): Evaluate {
  const parts = compileAll(place, expression.parts)
  return frame => {
    let text: Text = ''
    for (const part of parts) {
      const value = printable(frame.run, part(frame))
      text =
        typeof text === 'string' && typeof value === 'string'
          ? text + value
          : joinTexts([text, value])
    }
    const length = sizeOf(text)
    if (length > frame.run.limits.characters) spendText(frame.run, length)
    return text
  }
}

function compileConditional(place: CompilePlace, expression: Of<'conditional'>): Evaluate {
  const soft = { ...place, isSoft: true }
  const test = compileCondition(soft, expression.test)
  const then = compileExpression(soft, expression.then)
  if (!expression.otherwise) {
    const missing = new Undefined(
      () => 'the inline if-expression evaluated to false and no else section was defined.',
    )
    return frame => (test(frame) ? then(frame) : missing)
  }
  const otherwise = compileExpression(soft, expression.otherwise)
  return frame => (test(frame) ? then(frame) : otherwise(frame))
}
