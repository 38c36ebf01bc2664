import { PythonError } from '../../python/error.ts'
import { sizeOf } from '../../python/text/text.ts'
import { PythonTuple } from '../../python/value.ts'
import type { Assign, Evaluate, Execute, RunFrame } from '../frame.ts'
import { callValue, compileEntry, distance, makeFrame, outerFrame } from '../frame.ts'
import { unpack } from '../iteration.ts'
import type { Expression, Statement, Target } from '../parse/syntax.ts'
import { capture, writeString, writeText } from '../run.ts'
import { printable } from '../show.ts'
import type { Text, Value } from '../value.ts'
import { isText, Namespace, typeError, typeOf } from '../value.ts'
import { visitExpression, visitStatements, visitTarget } from './analyze.ts'
import { compileArguments, compileFilterOn } from './compile-call.ts'
import { compileCondition } from './compile-condition.ts'
import { compileExpression } from './compile-expression.ts'
import { compileFor } from './compile-loop.ts'
import { compileMacro } from './compile-macro.ts'
import type { CompilePlace } from './place.ts'
import { innerPlace, refuse } from './place.ts'
import { findReference, newFunction, newSymbols } from './scope.ts'

type Of<Kind extends Statement['kind']> = Extract<Statement, { kind: Kind }>

/** Compiles statements to be run one after the other. */
export function compileStatements(place: CompilePlace, statements: readonly Statement[]): Execute {
  return inOrder(statements.map(statement => compileStatement(place, statement)))
}

/** Runs steps until one of them breaks off; a few at once, because a loop over them takes longer. */
function inOrder(steps: readonly Execute[]): Execute {
  const [first, second, third, fourth] = steps
  if (!first) return () => 0
  if (!second) return first
  if (!third) return frame => first(frame) || second(frame)
  if (!fourth) return frame => first(frame) || second(frame) || third(frame)
  if (steps.length === 4) {
    return frame => first(frame) || second(frame) || third(frame) || fourth(frame)
  }
  const rest = inOrder(steps.slice(3))
  return frame => first(frame) || second(frame) || third(frame) || rest(frame)
}

function compileStatement(place: CompilePlace, statement: Statement): Execute {
  place.template.cost++
  switch (statement.kind) {
    case 'data':
      return compileData(statement.text)
    case 'print':
      return compilePrint(place, statement)
    case 'if':
      return compileIf(place, statement)
    case 'for':
      return compileFor(place, statement)
    case 'set':
      return compileSet(place, statement)
    case 'break':
    case 'continue': {
      if (!place.inLoop) refuse(place, statement.at, `'${statement.kind}' outside of a loop`)
      const flow = statement.kind === 'break' ? 1 : 2
      return () => flow
    }
    default:
      return compileBlock(place, statement)
  }
}

function compileData(text: string): Execute {
  return frame => {
    writeString(frame.run, text)
    return 0
  }
}

type BlockStatement = Exclude<
  Statement,
  { kind: 'data' | 'print' | 'if' | 'for' | 'set' | 'break' | 'continue' }
>

function compileBlock(place: CompilePlace, statement: BlockStatement): Execute {
  switch (statement.kind) {
    case 'macro':
      return compileMacroDefinition(place, statement)
    case 'set-block':
      return compileSetBlock(place, statement)
    case 'filter-block':
      return compileFilterBlock(place, statement)
    case 'call-block':
      return compileCallBlock(place, statement)
    case 'generation':
      return compileGeneration(place, statement)
    case 'with':
      return compileWith(place, statement)
    case 'scope':
      return compileScope(place, statement.body)
    case 'block':
      return compileNamedBlock(place, statement)
    case 'load':
      return () => {
        throw new PythonError(
          'TypeError',
          `'${statement.tag}' loads another template, and no loader is configured`,
        )
      }
  }
}

function compilePrint(place: CompilePlace, { value, at }: Of<'print'>): Execute {
  if (value.kind === 'constant' && typeof value.value === 'string') {
    place.template.cost++
    return compileData(value.value)
  }
  const evaluate = compileExpression(place, value)
  return frame => {
    const { run } = frame
    run.at = at
    const printed = evaluate(frame)
    if (typeof printed === 'string') writeString(run, printed)
    else writeText(run, printable(run, printed))
    return 0
  }
}

function compileIf(place: CompilePlace, statement: Of<'if'>): Execute {
  const soft = { ...place, isSoft: true }
  const branches = statement.branches.map(branch => ({
    at: branch.test.at,
    test: compileCondition(soft, branch.test),
    body: compileStatements(soft, branch.body),
  }))
  const otherwise = compileStatements(soft, statement.otherwise)
  const [only] = branches
  if (only && branches.length === 1) {
    const { at, test, body } = only
    return frame => {
      frame.run.at = at
      return test(frame) ? body(frame) : otherwise(frame)
    }
  }
  return frame => {
    for (let index = 0; index < branches.length; index++) {
      const branch = branches[index] as (typeof branches)[number]
      frame.run.at = branch.at
      if (branch.test(frame)) return branch.body(frame)
    }
    return otherwise(frame)
  }
}

/** Compiles an assignment to a target. */
export function compileAssign(place: CompilePlace, target: Target): Assign {
  switch (target.kind) {
    case 'name':
      return compileStore(place, target.name)
    case 'namespace': {
      const read = compileExpression(place, { ...target, kind: 'name' })
      const { attribute } = target
      return (frame, value) => {
        const namespace = read(frame)
        if (namespace instanceof Namespace) namespace.attributes.set(attribute, value)
      }
    }
    case 'tuple': {
      const items = target.items.map(item => compileAssign(place, item))
      return (frame, value) => {
        const isReady = value instanceof PythonTuple && value.items.length === items.length
        const values = isReady ? value.items : unpack(frame.run, value, items.length)
        for (let index = 0; index < items.length; index++) {
          ;(items[index] as Assign)(frame, values[index] as Value)
        }
      }
    }
  }
}

function compileStore(place: CompilePlace, name: string): Assign {
  const reference = findReference(place.symbols, name)
  if (!reference) throw new Error(`The name ${name} was not analyzed.`)
  const { slot } = reference
  const hops = distance(place.symbols.owner, reference.owner)
  if (place.isTop && place.template.hasBlocks) {
    return (frame, value) => {
      frame.slots[slot] = value
      frame.run.exports.set(name, value)
    }
  }
  if (hops > 0) {
    return (frame, value) => {
      outerFrame(frame, hops).slots[slot] = value
    }
  }
  return (frame, value) => {
    frame.slots[slot] = value
  }
}

function compileSet(place: CompilePlace, statement: Of<'set'>): Execute {
  const value = compileExpression(place, statement.value)
  const assign = compileAssign(place, statement.target)
  const check = compileNamespaceCheck(place, statement.target)
  const { at } = statement
  if (!check) {
    return frame => {
      frame.run.at = at
      assign(frame, value(frame))
      return 0
    }
  }
  return frame => {
    frame.run.at = at
    check(frame)
    assign(frame, value(frame))
    return 0
  }
}

function compileNamespaceCheck(
  place: CompilePlace,
  target: Target,
): ((frame: RunFrame) => void) | undefined {
  if (target.kind === 'name') return undefined
  if (target.kind === 'tuple') {
    const checks = target.items.map(item => compileNamespaceCheck(place, item))
    return frame => {
      for (const check of checks) check?.(frame)
    }
  }
  const read = compileExpression(place, { ...target, kind: 'name' })
  return frame => {
    if (!(read(frame) instanceof Namespace)) {
      throw new PythonError(
        'TemplateRuntimeError',
        'cannot assign attribute on non-namespace object',
      )
    }
  }
}

function compileMacroDefinition(place: CompilePlace, statement: Of<'macro'>): Execute {
  const assign = compileStore(place, statement.name)
  const macro = compileMacro(place, statement)
  return frame => {
    assign(frame, macro(frame))
    return 0
  }
}

type FilterNode = Extract<Expression, { kind: 'filter' }>

/** Compiles the filters of a block, the innermost of which gets the block's text. */
function compileBlockFilter(
  place: CompilePlace,
  expression: Expression,
): (frame: RunFrame, text: Value) => Value {
  const filter = expression as FilterNode
  const outer = compileFilterOn(place, filter)
  if (!filter.value) return outer
  const inner = compileBlockFilter(place, filter.value)
  return (frame, text) => outer(frame, inner(frame, text))
}

function compileSetBlock(place: CompilePlace, statement: Of<'set-block'>): Execute {
  const inner = innerPlace(place)
  visitStatements(inner.symbols, statement.body)
  visitExpression(inner.symbols, statement.filter)
  const body = compileStatements(inner, statement.body)
  const filter = statement.filter && compileBlockFilter(inner, statement.filter)
  const assign = compileAssign(place, statement.target)
  const check = compileNamespaceCheck(place, statement.target)
  const entry = compileEntry(inner.symbols)
  return frame => {
    check?.(frame)
    entry?.(frame)
    const text = capture(frame.run, () => body(frame))
    frame.run.at = statement.at
    assign(frame, filter ? filter(frame, text) : text)
    return 0
  }
}

function compileFilterBlock(place: CompilePlace, statement: Of<'filter-block'>): Execute {
  const inner = innerPlace(place)
  visitStatements(inner.symbols, statement.body)
  visitExpression(inner.symbols, statement.filter)
  const body = compileStatements(inner, statement.body)
  const filter = compileBlockFilter(inner, statement.filter)
  const entry = compileEntry(inner.symbols)
  return frame => {
    entry?.(frame)
    const text = capture(frame.run, () => body(frame))
    frame.run.at = statement.at
    writeResult(frame, filter(frame, text))
    return 0
  }
}

/** Prints what a block's filter or call gave, which Jinja takes only if it is a string. */
function writeResult(frame: RunFrame, value: Value): void {
  if (!isText(value)) typeError(`expected str instance, ${typeOf(value)} found`)
  writeText(frame.run, value)
}

function compileCallBlock(place: CompilePlace, statement: Of<'call-block'>): Execute {
  const { parameters, body, at } = statement
  const caller = compileMacro(place, { parameters, body, at })
  const call = statement.call as Extract<Expression, { kind: 'call' }>
  const callee: Evaluate = compileExpression(place, call.callee)
  const input = compileArguments(place, call.input)
  return frame => {
    frame.run.at = at
    const called = callee(frame)
    const { positional, named } = input(frame)
    const names = new Map(named)
    names.set('caller', caller(frame))
    writeResult(frame, callValue(frame.run, called, { positional, named: names }))
    return 0
  }
}

/** A generation block is a call block to Jinja: its body is a function of its own. */
function compileGeneration(place: CompilePlace, statement: Of<'generation'>): Execute {
  const body = compileMacro(place, { parameters: [], body: statement.body, at: statement.at })
  return frame => {
    const { run } = frame
    const text = callValue(run, body(frame), { positional: [], named: undefined })
    const start = run.root.text.length
    writeResult(frame, text)
    run.generated.push([start, start + sizeOf(text as Text)])
    return 0
  }
}

function compileWith(place: CompilePlace, statement: Of<'with'>): Execute {
  const inner = innerPlace(place)
  for (const target of statement.targets) visitTarget(inner.symbols, target, true)
  visitStatements(inner.symbols, statement.body)
  const values = statement.values.map(value => compileExpression(place, value))
  const targets = statement.targets.map(target => compileAssign(inner, target))
  const body = compileStatements(inner, statement.body)
  const entry = compileEntry(inner.symbols)
  return frame => {
    frame.run.at = statement.at
    entry?.(frame)
    targets.forEach((assign, index) => {
      assign(frame, (values[index] as Evaluate)(frame))
    })
    return body(frame)
  }
}

function compileScope(place: CompilePlace, statements: readonly Statement[]): Execute {
  const inner = innerPlace(place)
  visitStatements(inner.symbols, statements)
  const body = compileStatements(inner, statements)
  const entry = compileEntry(inner.symbols)
  return frame => {
    entry?.(frame)
    return body(frame)
  }
}

/** A block sees only what was given to the template and what it set at its top. */
function compileNamedBlock(place: CompilePlace, statement: Of<'block'>): Execute {
  const { name, at } = statement
  const { blocks } = place.template
  if (blocks.has(name)) refuse(place, at, `block '${name}' defined twice`)
  const scope = newFunction(undefined)
  const symbols = newSymbols(scope, undefined)
  visitStatements(symbols, statement.body)
  const inner: CompilePlace = { ...place, symbols, isSoft: false, inLoop: false, isTop: false }
  blocks.add(name)
  const body = compileStatements(inner, statement.body)
  const entry = compileEntry(symbols)
  return ({ run }) => {
    const frame = makeFrame(scope, undefined, run)
    entry?.(frame)
    return body(frame)
  }
}
