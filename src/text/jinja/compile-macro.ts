import { PythonTuple } from '../../python/value.ts'
import { readsName, visitExpression, visitStatements } from './analyze.ts'
import { compileExpression } from './compile-expression.ts'
import { compileStatements } from './compile-statement.ts'
import type { Evaluate, Execute, Frame } from './frame.ts'
import { compileEntry, openFrame } from './frame.ts'
import type { Place } from './place.ts'
import { refuse } from './place.ts'
import type { Run } from './run.ts'
import { callDeeper, capture, spend } from './run.ts'
import type { FunctionScope } from './scope.ts'
import { declare, findReference, newFunction, newSymbols } from './scope.ts'
import type { MacroBody } from './syntax.ts'
import type { Dict, Input, Value } from './value.ts'
import { TemplateObject, typeError, Undefined } from './value.ts'

/** A compiled macro, before it is bound to the frame it is defined in. */
interface Macro {
  readonly name: string | undefined
  readonly scope: FunctionScope
  readonly parameters: readonly MacroParameter[]
  /** The slots of the special variables, where the body reads them. */
  readonly special: Readonly<Record<'caller' | 'kwargs' | 'varargs', number | undefined>>
  readonly entry: ((frame: Frame) => void) | undefined
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
  place: Place,
  node: MacroBody & { readonly name?: string; readonly at: number },
): (frame: Frame) => TemplateObject {
  const scope = newFunction(place.symbols.owner)
  const symbols = newSymbols(scope, place.symbols)
  const inner: Place = { ...place, symbols, isSoft: false, inLoop: false, isTop: false }
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
  return frame => bindMacro(macro, frame)
}

function declareSpecial(place: Place, node: MacroBody & { readonly at: number }): Macro['special'] {
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

function bindMacro(macro: Macro, outer: Frame): TemplateObject {
  const names = macro.parameters.map(parameter => parameter.name)
  return new TemplateObject('Macro', {
    call: (run, input) => invoke(macro, outer, { run, input }),
    attribute: name => {
      if (name === 'name') return macro.name ?? null
      if (name === 'arguments') return new PythonTuple(names)
      if (name === 'caller') return macro.special.caller !== undefined
      if (name === 'catch_kwargs') return macro.special.kwargs !== undefined
      return name === 'catch_varargs' ? macro.special.varargs !== undefined : undefined
    },
    show: () => (macro.name === undefined ? '<Macro anonymous>' : `<Macro '${macro.name}'>`),
  })
}

interface Invocation {
  readonly run: Run
  readonly input: Input
}

function invoke(macro: Macro, outer: Frame, { run, input }: Invocation): Value {
  spend(run, macro.cost)
  const frame = openFrame(macro.scope, outer, run)
  fillSlots(macro, frame, input)
  return callDeeper(run, () =>
    capture(run, () => {
      macro.entry?.(frame)
      fillDefaults(macro, frame)
      macro.body(frame)
    }),
  )
}

function fillSlots(macro: Macro, frame: Frame, { positional, named }: Input): void {
  const { parameters, special } = macro
  const left = new Map(named)
  for (const [index, { name, slot }] of parameters.entries()) {
    if (index < positional.length) frame.slots[slot] = positional[index]
    else {
      frame.slots[slot] = left.get(name)
      left.delete(name)
    }
  }
  const isOwn = parameters.some(parameter => parameter.slot === special.caller)
  if (special.caller !== undefined && !isOwn) {
    const caller = left.get('caller') ?? null
    left.delete('caller')
    frame.slots[special.caller] = caller ?? new Undefined(() => 'No caller defined')
  }
  if (special.kwargs !== undefined) frame.slots[special.kwargs] = new Map(left) as Dict
  else refuseNames(macro, left)
  const extra = positional.slice(parameters.length)
  if (special.varargs !== undefined) frame.slots[special.varargs] = new PythonTuple(extra)
  else if (extra.length > 0) {
    typeError(`macro '${macro.name}' takes not more than ${parameters.length} argument(s)`)
  }
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

function fillDefaults(macro: Macro, frame: Frame): void {
  for (const { name, slot, default: value } of macro.parameters) {
    if (frame.slots[slot] !== undefined) continue
    frame.slots[slot] = value
      ? value(frame)
      : new Undefined(() => `parameter '${name}' was not provided`)
  }
}
