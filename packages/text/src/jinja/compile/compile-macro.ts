import { PythonTuple } from '../../python/value.ts'
import type { Evaluate, Execute, RunFrame } from '../frame.ts'
import { compileEntry, makeFrame } from '../frame.ts'
import type { MacroBody } from '../parse/syntax.ts'
import type { Run } from '../run.ts'
import { goDeeper, spend } from '../run.ts'
import { emptyText, writtenText } from '../text.ts'
import type { Behaviour, Dict, Input, Value } from '../value.ts'
import { TemplateObject, typeError, Undefined } from '../value.ts'
import { readsName, visitExpression, visitStatements } from './analyze.ts'
import { compileExpression } from './compile-expression.ts'
import { compileStatements } from './compile-statement.ts'
import type { CompilePlace } from './place.ts'
import { refuse } from './place.ts'
import type { FunctionScope } from './scope.ts'
import { declare, findReference, newFunction, newSymbols } from './scope.ts'

/** A compiled macro, before it is bound to the frame it is defined in. */
interface Macro {
  readonly name: string | undefined
  readonly scope: FunctionScope
  readonly parameters: readonly MacroParameter[]
  /** The slots of the special variables, if the body reads them. */
  readonly special: Readonly<Record<'caller' | 'kwargs' | 'varargs', number | undefined>>
  readonly entry: ((frame: RunFrame) => void) | undefined
  readonly body: Execute
  readonly cost: number
}

interface MacroParameter {
  readonly name: string
  readonly slot: number
  readonly default: Evaluate | undefined
}

/** Compiles a macro or the body of a call block; the result makes the macro in a frame. */
export function compileMacro(
  place: CompilePlace,
  node: MacroBody & { readonly name?: string; readonly at: number },
): (frame: RunFrame) => TemplateObject {
  const scope = newFunction(place.symbols.owner)
  const symbols = newSymbols(scope, place.symbols)
  const inner: CompilePlace = { ...place, symbols, isSoft: false, inLoop: false, isTop: false }
  const slots = node.parameters.map(parameter => declare(symbols, parameter.name).slot)
  const special = declareSpecial(inner, node)
  for (const parameter of node.parameters) visitExpression(symbols, parameter.default)
  visitStatements(symbols, node.body)
  const before = place.template.cost
  const parameters = node.parameters.map((parameter, index) => ({
    name: parameter.name,
    slot: slots[index] as number,
    default: parameter.default && compileExpression(inner, parameter.default),
  }))
  const body = compileStatements(inner, node.body)
  const entry = compileEntry(symbols)
  const cost = place.template.cost - before
  const macro: Macro = { name: node.name, scope, parameters, special, entry, body, cost }
  return outer => new TemplateObject('Macro', MACRO, { macro, outer } satisfies BoundMacro)
}

function declareSpecial(
  place: CompilePlace,
  node: MacroBody & { readonly at: number },
): Macro['special'] {
  const slotOf = (name: 'caller' | 'kwargs' | 'varargs'): number | undefined => {
    if (!readsName(node.body, name)) return undefined
    const own = node.parameters.find(parameter => parameter.name === name)
    if (!own) return declare(place.symbols, name).slot
    if (name === 'caller') {
      if (!own.default) {
        refuse(place, node.at, 'The special "caller" argument must be omitted or have a default.')
      }
      return findReference(place.symbols, name)?.slot
    }
    return undefined
  }
  return { caller: slotOf('caller'), kwargs: slotOf('kwargs'), varargs: slotOf('varargs') }
}

/** A macro with the frame it was defined in. */
interface BoundMacro {
  readonly macro: Macro
  readonly outer: RunFrame
}

const MACRO: Behaviour = {
  call: (run, input, state) => invoke(state as BoundMacro, run, input),
  attribute: (name, state) => macroAttribute((state as BoundMacro).macro, name),
  show: state => {
    const { name } = (state as BoundMacro).macro
    return name === undefined ? '<Macro anonymous>' : `<Macro '${name}'>`
  },
}

function macroAttribute(macro: Macro, name: string): Value | undefined {
  switch (name) {
    case 'name':
      return macro.name ?? null
    case 'arguments':
      return new PythonTuple(macro.parameters.map(parameter => parameter.name))
    case 'caller':
      return macro.special.caller !== undefined
    case 'catch_kwargs':
      return macro.special.kwargs !== undefined
    case 'catch_varargs':
      return macro.special.varargs !== undefined
    default:
      return undefined
  }
}

function invoke({ macro, outer }: BoundMacro, run: Run, input: Input): Value {
  spend(run, macro.cost)
  const frame = makeFrame(macro.scope, outer, run)
  fillSlots(macro, frame, input)
  const { at, output } = run
  goDeeper(run)
  run.output = emptyText()
  macro.entry?.(frame)
  fillDefaults(macro, frame)
  macro.body(frame)
  const text = writtenText(run.output)
  run.output = output
  run.depth--
  run.at = at
  return text
}

function fillSlots(macro: Macro, frame: RunFrame, { positional, named }: Input): void {
  const { parameters, special } = macro
  let usedNames = 0
  for (let index = 0; index < parameters.length; index++) {
    const { name, slot } = parameters[index] as MacroParameter
    if (index < positional.length) frame.slots[slot] = positional[index]
    else if (named) {
      const value = named.get(name)
      frame.slots[slot] = value
      if (value !== undefined) usedNames++
    }
  }
  const left =
    named && named.size > usedNames ? notTaken(macro, named, positional.length) : undefined
  if (special.caller !== undefined) fillCaller(macro, frame, left)
  if (special.kwargs !== undefined) frame.slots[special.kwargs] = new Map(left) as Dict
  else if (left) refuseNames(macro, left)
  const extra = positional.length > parameters.length ? positional.slice(parameters.length) : []
  if (special.varargs !== undefined) frame.slots[special.varargs] = new PythonTuple(extra)
  else if (extra.length > 0) {
    typeError(`macro '${macro.name}' takes not more than ${parameters.length} argument(s)`)
  }
}

/** The named arguments that no parameter behind the positional ones has taken. */
function notTaken(
  { parameters }: Macro,
  named: ReadonlyMap<string, Value>,
  positional: number,
): Map<string, Value> {
  const left = new Map(named)
  for (const { name } of parameters.slice(positional)) left.delete(name)
  return left
}

function fillCaller(macro: Macro, frame: RunFrame, left: Map<string, Value> | undefined): void {
  const slot = macro.special.caller as number
  if (macro.parameters.some(parameter => parameter.slot === slot)) return
  const caller = left?.get('caller') ?? null
  left?.delete('caller')
  frame.slots[slot] = caller ?? new Undefined(() => 'No caller defined')
}

function refuseNames(macro: Macro, names: ReadonlyMap<string, Value>): void {
  const [first] = names.keys()
  if (first === undefined) return
  if (names.has('caller')) {
    typeError(
      `macro '${macro.name}' was invoked with two values for the special caller argument. This is most likely a bug.`,
    )
  }
  typeError(`macro '${macro.name}' takes no keyword argument '${first}'`)
}

function fillDefaults(macro: Macro, frame: RunFrame): void {
  for (const { name, slot, default: value } of macro.parameters) {
    if (frame.slots[slot] !== undefined) continue
    frame.slots[slot] = value
      ? value(frame)
      : new Undefined(() => `parameter '${name}' was not provided`)
  }
}
