import { getAttribute, getItem, isPlainMember, lookUpAttribute, lookUpItem } from '../access.ts'
import type { Evaluate, RunFrame } from '../frame.ts'
import { compileRead } from '../frame.ts'
import type { Expression } from '../parse/syntax.ts'
import { charge } from '../run.ts'
import type { Value } from '../value.ts'
import { isText, TemplateObject, undefinedMember, undefinedName } from '../value.ts'
import { compileExpression } from './compile-expression.ts'
import type { CompilePlace } from './place.ts'
import { findReference } from './scope.ts'

type Of<Kind extends Expression['kind']> = Extract<Expression, { kind: Kind }>

/** A compiled expression that says nothing if its value is not there. */
type Find = (frame: RunFrame) => Value | undefined

/** Compiles an expression for what only asks whether it is there or true: no undefined value is made. */
export function compileFind(place: CompilePlace, expression: Expression): Find {
  switch (expression.kind) {
    case 'name': {
      const reference = findReference(place.symbols, expression.name)
      if (!reference) break
      place.template.cost++
      return compileRead(place.symbols.owner, reference)
    }
    case 'attribute': {
      place.template.cost++
      const { name } = expression
      if (isPlainMember(name)) return findMember(place, expression.object, name, lookUpMember)
      const object = compileExpression(place, expression.object)
      return frame => lookUpAttribute(object(frame), name)
    }
    case 'item': {
      if (expression.key.kind !== 'constant') break
      place.template.cost++
      const key = expression.key.value
      if (typeof key === 'string' && isPlainMember(key)) {
        return findMember(place, expression.object, key, lookUpItem)
      }
      const object = compileExpression(place, expression.object)
      return frame => lookUpCharged(object(frame), key, frame)
    }
  }
  return compileExpression(place, expression)
}

/** Compiles the reading of a name. */
export function compileName(place: CompilePlace, { name }: Of<'name'>): Evaluate {
  const missing = undefinedName(name)
  const reference = findReference(place.symbols, name)
  // a name that the analysis did not see is in an argument that Jinja does not analyse either
  if (!reference) return () => missing
  const { slot, owner } = reference
  if (owner === place.symbols.owner) {
    return frame => {
      const value = frame.slots[slot]
      return value === undefined ? missing : value
    }
  }
  const read = compileRead(place.symbols.owner, reference)
  return frame => {
    const value = read(frame)
    return value === undefined ? missing : value
  }
}

/** Compiles `object.name`. */
export function compileAttribute(place: CompilePlace, expression: Of<'attribute'>): Evaluate {
  const { name } = expression
  if (isPlainMember(name)) return getMember(place, expression.object, name, lookUpMember)
  const owner = compileExpression(place, expression.object)
  return frame => getAttribute(owner(frame), name)
}

/** Compiles `object[key]`. */
export function compileItem(place: CompilePlace, expression: Of<'item'>): Evaluate {
  if (expression.key.kind === 'constant') {
    const key = expression.key.value
    if (typeof key === 'string' && isPlainMember(key)) {
      return getMember(place, expression.object, key, lookUpItem)
    }
    const owner = compileExpression(place, expression.object)
    return frame => {
      const object = owner(frame)
      const found = lookUpCharged(object, key, frame)
      return found === undefined ? undefinedMember(object, key) : found
    }
  }
  const owner = compileExpression(place, expression.object)
  const key = compileExpression(place, expression.key)
  return frame => {
    const object = owner(frame)
    if (isText(object)) charge(frame.run, object)
    return getItem(object, key(frame))
  }
}

function lookUpCharged(object: Value, key: Value, { run }: RunFrame): Value | undefined {
  if (isText(object)) charge(run, object)
  return lookUpItem(object, key)
}

/** What something else than a dict has under a name. */
type LookUp = (object: Value, name: string) => Value | undefined

/** What `object.name` is, if the name is neither refused nor a method of dicts. */
function lookUpMember(object: Value, name: string): Value | undefined {
  if (object instanceof TemplateObject) return object.behaviour.attribute?.(name, object.state)
  return lookUpAttribute(object, name)
}

/** A variable of the function at work, and what stands for it if it has no value. */
interface OwnVariable {
  readonly slot: number
  readonly missing: Value
}

function ownVariable(place: CompilePlace, expression: Expression): OwnVariable | undefined {
  if (expression.kind !== 'name') return undefined
  const reference = findReference(place.symbols, expression.name)
  if (reference?.owner !== place.symbols.owner) return undefined
  place.template.cost++
  return { slot: reference.slot, missing: undefinedName(expression.name) }
}

/**
 * Compiles the search for a member by a name that is neither refused nor a method of dicts. Most members
 * are those of variables, which are then read without a call.
 */
function findMember(place: CompilePlace, object: Expression, name: string, lookUp: LookUp): Find {
  const variable = ownVariable(place, object)
  if (variable) {
    const { slot, missing } = variable
    return frame => {
      const value = frame.slots[slot]
      const owner = value === undefined ? missing : value
      return owner instanceof Map ? owner.get(name) : lookUp(owner, name)
    }
  }
  const evaluate = compileExpression(place, object)
  return frame => {
    const owner = evaluate(frame)
    return owner instanceof Map ? owner.get(name) : lookUp(owner, name)
  }
}

/** Compiles the reading of such a member, which is an undefined value if there is none. */
function getMember(
  place: CompilePlace,
  object: Expression,
  name: string,
  lookUp: LookUp,
): Evaluate {
  const variable = ownVariable(place, object)
  if (variable) {
    const { slot, missing } = variable
    return frame => {
      const value = frame.slots[slot]
      const owner = value === undefined ? missing : value
      const found = owner instanceof Map ? owner.get(name) : lookUp(owner, name)
      return found === undefined ? undefinedMember(owner, name) : found
    }
  }
  const evaluate = compileExpression(place, object)
  return frame => {
    const owner = evaluate(frame)
    const found = owner instanceof Map ? owner.get(name) : lookUp(owner, name)
    return found === undefined ? undefinedMember(owner, name) : found
  }
}
