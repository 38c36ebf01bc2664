import { PythonError } from '../python/error.ts'
import type { FunctionScope, Reference, Symbols } from './compile/scope.ts'
import type { Run } from './run.ts'
import type { Input, Value } from './value.ts'
import { TemplateObject, typeError, typeOf, Undefined } from './value.ts'

/** The variables of one running call; an empty slot is a name without a value. */
export interface RunFrame {
  readonly slots: (Value | undefined)[]
  readonly parent: RunFrame | undefined
  readonly run: Run
}

/** A compiled expression. */
export type Evaluate = (frame: RunFrame) => Value

/** A compiled condition. */
export type Decide = (frame: RunFrame) => boolean

/** How a statement ended: 0 onwards, 1 with `break`, 2 with `continue`. */
export type Flow = 0 | 1 | 2

/** A compiled statement. */
export type Execute = (frame: RunFrame) => Flow

/** A compiled assignment. */
export type Assign = (frame: RunFrame, value: Value) => void

/** The value of a name given to the template or known to all. */
function lookUpName(run: Run, name: string): Value | undefined {
  const exported = run.exports.size > 0 ? run.exports.get(name) : undefined
  return exported === undefined ? run.variables.get(name) : exported
}

/** A frame for one call of a function, its names looked up. */
export function makeFrame(scope: FunctionScope, parent: RunFrame | undefined, run: Run): RunFrame {
  const { size, lookups } = scope
  const slots: (Value | undefined)[] = []
  for (let slot = 0; slot < size; slot++) slots.push(undefined)
  for (let index = 0; index < lookups.length; index++) {
    const { slot, name } = lookups[index] as FunctionScope['lookups'][number]
    slots[slot] = lookUpName(run, name)
  }
  return { slots, parent, run }
}

/** How many functions outward a variable lives. */
export function distance(from: FunctionScope, to: FunctionScope): number {
  let hops = 0
  for (let scope: FunctionScope | undefined = from; scope !== to; scope = scope.parent) {
    if (!scope) throw new Error('A variable lives outside of the functions around it.')
    hops++
  }
  return hops
}

/** The frame so many functions outward. */
export function outerFrame(frame: RunFrame, hops: number): RunFrame {
  let outer = frame
  for (let left = hops; left > 0; left--) outer = outer.parent as RunFrame
  return outer
}

/** Reads a variable, without a value if it has none. */
export function compileRead(
  from: FunctionScope,
  reference: Reference,
): (frame: RunFrame) => Value | undefined {
  const { slot, owner } = reference
  const hops = distance(from, owner)
  if (hops === 0) return frame => frame.slots[slot]
  return frame => outerFrame(frame, hops).slots[slot]
}

/** What has to be done whenever a scope begins. */
export function compileEntry(symbols: Symbols): ((frame: RunFrame) => void) | undefined {
  const steps: ((frame: RunFrame) => void)[] = []
  for (const [name, reference] of symbols.references) {
    const load = symbols.loads.get(reference)
    const { slot } = reference
    if (load?.kind === 'alias') {
      const read = compileRead(symbols.owner, load.from)
      steps.push(frame => {
        frame.slots[slot] = read(frame)
      })
    } else if (load?.kind === 'missing') {
      steps.push(frame => {
        frame.slots[slot] = undefined
      })
    } else if (load?.kind === 'lookup') {
      // a name that is only read never changes, so it is looked up once
      if (!symbols.stores.has(name)) symbols.owner.lookups.push({ slot, name })
      else {
        steps.push(frame => {
          frame.slots[slot] = lookUpName(frame.run, name)
        })
      }
    }
  }
  if (steps.length === 0) return undefined
  return frame => {
    for (const step of steps) step(frame)
  }
}

/** Calls a value, or raises if it cannot be called. */
export function callValue(run: Run, callee: Value, input: Input): Value {
  if (callee instanceof TemplateObject && callee.behaviour.call) {
    return callee.behaviour.call(run, input, callee.state)
  }
  if (callee instanceof Undefined) callee.raise()
  return typeError(`'${typeOf(callee)}' object is not callable`)
}

/** Raises Jinja's error for an unknown filter or test. */
export function unknownName(kind: 'filter' | 'test', name: string): never {
  throw new PythonError('TemplateRuntimeError', `No ${kind} named '${name}' found.`)
}
