import type { Clause, Expression } from '@espalier/text/python'
import { setItem } from '../items.ts'
import { ProgramIterator } from '../iterables.ts'
import { isTrue, iterate } from '../operators.ts'
import { type Dict, PythonTuple, type Value } from '../values.ts'
import { compileExpression, type Evaluate, setOf } from './expression.ts'
import { bindTarget, Frame, type Scope } from './scope.ts'
import { type Assign, assignTo } from './target.ts'

interface ReadyClause {
  readonly source: Evaluate
  readonly assign: Assign
  readonly conditions: readonly Evaluate[]
}

/** Turns a comprehension into a function; a generator gives its items one by one. */
export function compileComprehension(
  expression: Extract<Expression, { kind: 'comprehension' }>,
  outer: Scope,
): Evaluate {
  const { makes, clauses } = expression
  const names = new Set<string>()
  for (const clause of clauses) bindTarget(clause.target, names)
  const places = new Map([...names].map((name, place) => [name, place]))
  const scope: Scope = { ...outer, places, parent: outer }
  // The first source is evaluated where the comprehension stands, the rest inside of it.
  const first = compileExpression((clauses[0] as Clause).source, outer)
  const ready = clauses.map(clause => readyClause(clause, scope))
  const item = compileExpression(expression.item, scope)
  const value = expression.value && compileExpression(expression.value, scope)
  const produce: Evaluate = value ? frame => new PythonTuple([item(frame), value(frame)]) : item
  return frame => {
    const source = iterate(first(frame))
    const inner = new Frame(new Array(places.size), frame, frame.running)
    const items = each(ready, produce, { frame: inner, source })
    return gather(makes, items)
  }
}

function gather(makes: 'list' | 'set' | 'generator' | 'dict', items: Generator<Value>): Value {
  if (makes === 'generator') return new ProgramIterator(items)
  if (makes === 'list') return [...items]
  if (makes === 'set') return setOf(items)
  const dict: Dict = new Map()
  for (const pair of items) {
    const [key, value] = (pair as PythonTuple<Value>).items as [Value, Value]
    setItem(dict, key, value)
  }
  return dict
}

function readyClause({ target, source, conditions }: Clause, scope: Scope): ReadyClause {
  return {
    source: compileExpression(source, scope),
    assign: assignTo(target, scope),
    conditions: conditions.map(condition => compileExpression(condition, scope)),
  }
}

function* each(
  clauses: readonly ReadyClause[],
  produce: Evaluate,
  {
    frame,
    source,
    at = 0,
  }: { readonly frame: Frame; readonly source: Iterable<Value>; readonly at?: number },
): Generator<Value> {
  const { assign, conditions } = clauses[at] as ReadyClause
  const next = clauses[at + 1]
  for (const item of source) {
    assign(frame, item)
    if (!conditions.every(condition => isTrue(condition(frame)))) continue
    if (next === undefined) yield produce(frame)
    else yield* each(clauses, produce, { frame, source: iterate(next.source(frame)), at: at + 1 })
  }
}
