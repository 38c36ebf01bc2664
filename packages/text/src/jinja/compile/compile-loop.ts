import type { Assign, Decide, Execute, RunFrame } from '../frame.ts'
import { callValue, compileEntry, makeFrame } from '../frame.ts'
import { toIterable } from '../iteration.ts'
import { filtered, Loop } from '../loop.ts'
import type { ForStatement } from '../parse/syntax.ts'
import { callDeeper, capture, charge, spend, writeText } from '../run.ts'
import type { Text, Value } from '../value.ts'
import { TemplateObject } from '../value.ts'
import { readsName, setsName, visitExpression, visitStatements, visitTarget } from './analyze.ts'
import { compileCondition } from './compile-condition.ts'
import { compileExpression } from './compile-expression.ts'
import { compileAssign, compileStatements } from './compile-statement.ts'
import type { CompilePlace } from './place.ts'
import { innerPlace, refuse } from './place.ts'
import type { FunctionScope } from './scope.ts'
import { declare, newFunction, newSymbols } from './scope.ts'

type At = { readonly at: number }

/** The compiled parts of a loop. */
interface LoopParts {
  readonly assign: Assign
  readonly entry: ((frame: RunFrame) => void) | undefined
  readonly body: Execute
  readonly otherwise: Execute | undefined
  readonly filter: { readonly assign: Assign; readonly test: Decide } | undefined
  /** The slot of the variable `loop`, if the body reads it. */
  readonly loopSlot: number | undefined
  readonly cost: number
}

/** Compiles a `for` loop. */
export function compileFor(place: CompilePlace, node: ForStatement & At): Execute {
  if (setsName([node], 'loop')) {
    refuse(place, node.at, "Can't assign to special loop variable in for-loop target")
  }
  return node.recursive ? compileRecursive(place, node) : compilePlain(place, node)
}

function compilePlain(place: CompilePlace, node: ForStatement & At): Execute {
  const iterable = compileExpression(place, node.iterable)
  const parts = compileParts(place, node)
  const { at } = node
  return frame => {
    frame.run.at = at
    const source = sourceOf(parts, frame, iterable(frame))
    const isSimple = parts.loopSlot === undefined && Array.isArray(source)
    const finished = isSimple
      ? walkItems(parts, frame, source as readonly Value[])
      : walkLoop(parts, frame, new Loop(source, 0))
    return finished || !parts.otherwise ? 0 : parts.otherwise(frame)
  }
}

function compileParts(place: CompilePlace, node: ForStatement & At): LoopParts {
  const before = place.template.cost
  const inner = { ...innerPlace(place), inLoop: true }
  const hasLoop = node.recursive || readsName(node.body, 'loop')
  const loopSlot = hasLoop ? declare(inner.symbols, 'loop').slot : undefined
  visitTarget(inner.symbols, node.target, true)
  visitStatements(inner.symbols, node.body)
  const assign = compileAssign(inner, node.target)
  const body = compileStatements(inner, node.body)
  const entry = compileEntry(inner.symbols)
  const filter = compileLoopFilter(place, node)
  return {
    assign,
    entry,
    body,
    otherwise: compileOtherwise(place, node),
    filter,
    loopSlot,
    // even an empty iteration costs about as much as four expressions
    cost: place.template.cost - before + 4,
  }
}

function compileLoopFilter(place: CompilePlace, node: ForStatement): LoopParts['filter'] {
  if (!node.test) return undefined
  const inner = innerPlace(place)
  visitTarget(inner.symbols, node.target, true)
  visitExpression(inner.symbols, node.test)
  const assign = compileAssign(inner, node.target)
  const test = compileCondition(inner, node.test)
  const entry = compileEntry(inner.symbols)
  return {
    assign,
    test: frame => {
      entry?.(frame)
      return test(frame)
    },
  }
}

function compileOtherwise(place: CompilePlace, node: ForStatement): Execute | undefined {
  if (node.otherwise.length === 0) return undefined
  const inner = innerPlace(place)
  visitStatements(inner.symbols, node.otherwise)
  const body = compileStatements(inner, node.otherwise)
  const entry = compileEntry(inner.symbols)
  return frame => {
    entry?.(frame)
    return body(frame)
  }
}

function sourceOf(
  parts: LoopParts,
  frame: RunFrame,
  value: Value,
): readonly Value[] | Iterator<Value> {
  charge(frame.run, value)
  const source = toIterable(value)
  const { filter } = parts
  if (!filter) return source
  return filtered(source, item => {
    spend(frame.run, parts.cost)
    filter.assign(frame, item)
    return filter.test(frame)
  })
}

/** Runs the body for every item; returns whether any iteration completed, in which case `else` is skipped. */
function walkItems(parts: LoopParts, frame: RunFrame, items: readonly Value[]): boolean {
  const { assign, entry, body, cost } = parts
  let finished = false
  for (let index = 0; index < items.length; index++) {
    spend(frame.run, cost)
    assign(frame, items[index] as Value)
    entry?.(frame)
    const flow = body(frame)
    if (flow === 1) break
    if (flow === 0) finished = true
  }
  return finished
}

function walkLoop(parts: LoopParts, frame: RunFrame, loop: Loop): boolean {
  const { assign, entry, body, cost, loopSlot } = parts
  let finished = false
  for (let item = loop.next(); item !== undefined; item = loop.next()) {
    spend(frame.run, cost)
    assign(frame, item)
    if (loopSlot !== undefined) frame.slots[loopSlot] = loop.object
    entry?.(frame)
    const flow = body(frame)
    if (flow === 1) break
    if (flow === 0) finished = true
  }
  return finished
}

/** A recursive loop is a function of its own, which `loop(…)` calls again. */
function compileRecursive(place: CompilePlace, node: ForStatement & At): Execute {
  const iterable = compileExpression(place, node.iterable)
  const scope = newFunction(place.symbols.owner)
  const inner: CompilePlace = {
    ...place,
    symbols: newSymbols(scope, place.symbols),
    inLoop: false,
    isTop: false,
  }
  const parts = compileParts(inner, node)
  const { at } = node
  return frame => {
    frame.run.at = at
    const recurse = recursion(scope, parts, frame)
    const value = iterable(frame)
    const text = callValue(frame.run, recurse, { positional: [value, 0], named: undefined })
    writeText(frame.run, text as Text)
    return 0
  }
}

function recursion(scope: FunctionScope, parts: LoopParts, outer: RunFrame): TemplateObject {
  const recurse: TemplateObject = new TemplateObject('function', {
    call: (run, { positional: [value = null, depth = 0] }) =>
      callDeeper(run, () =>
        capture(run, () => {
          const frame = makeFrame(scope, outer, run)
          const loop = new Loop(sourceOf(parts, frame, value), depth as number, recurse)
          const finished = walkLoop(parts, frame, loop)
          if (!finished) parts.otherwise?.(frame)
        }),
      ),
  })
  return recurse
}
