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

/** A compiled expression that says nothing where its value is not there. */
type Find = (frame: RunFrame) => Value | undefined

/** Looks something up in an object. */
type LookUp = (object: Value, frame: RunFrame) => Value | undefined

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
      const object = compileExpression(place, expression.object)
      const lookUp = attributeLookUp(expression.name)
      return frame => lookUp(object(frame), frame)
    }
    case 'item': {
      if (expression.key.kind !== 'constant') break
      place.template.cost++
      const object = compileExpression(place, expression.object)
      const lookUp = itemLookUp(expression.key.value)
      return frame => lookUp(object(frame), frame)
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
  const owner = compileExpression(place, expression.object)
  if (!isPlainMember(name)) return frame => getAttribute(owner(frame), name)
  return frame => {
    const object = owner(frame)
    const found = object instanceof Map ? object.get(name) : lookUpMember(object, name)
    return found === undefined ? undefinedMember(object, name) : found
  }
}

/** Compiles `object[key]`. */
export function compileItem(place: CompilePlace, expression: Of<'item'>): Evaluate {
  const owner = compileExpression(place, expression.object)
  if (expression.key.kind === 'constant') {
    const key = expression.key.value
    if (typeof key === 'string' && isPlainMember(key)) {
      return frame => {
        const object = owner(frame)
        const found = object instanceof Map ? object.get(key) : lookUpItem(object, key)
        return found === undefined ? undefinedMember(object, key) : found
      }
    }
    const lookUp = itemLookUp(key)
    return frame => {
      const object = owner(frame)
      const found = lookUp(object, frame)
      return found === undefined ? undefinedMember(object, key) : found
    }
  }
  const key = compileExpression(place, expression.key)
  return frame => {
    const object = owner(frame)
    if (isText(object)) charge(frame.run, object)
    return getItem(object, key(frame))
  }
}

function attributeLookUp(name: string): LookUp {
  if (!isPlainMember(name)) return object => lookUpAttribute(object, name)
  return object => (object instanceof Map ? object.get(name) : lookUpMember(object, name))
}

/** What `object.name` is, where the name is neither refused nor a method of dicts. */
function lookUpMember(object: Value, name: string): Value | undefined {
  if (object instanceof TemplateObject) return object.behaviour.attribute?.(name, object.state)
  return lookUpAttribute(object, name)
}

function itemLookUp(key: Value): LookUp {
  if (typeof key === 'string' && isPlainMember(key)) {
    return object => (object instanceof Map ? object.get(key) : lookUpItem(object, key))
  }
  return (object, frame) => {
    if (isText(object)) charge(frame.run, object)
    return lookUpItem(object, key)
  }
}
