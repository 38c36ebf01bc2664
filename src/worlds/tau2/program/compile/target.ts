import type { Expression } from '@espalier/text/python'
import { SourceError } from '@espalier/text/python'
import { setAttribute } from '../attributes.ts'
import { setItem, unpack } from '../items.ts'
import type { Value } from '../values.ts'
import { compileExpression } from './expression.ts'
import type { Frame, Scope } from './scope.ts'

/** An assignment ready to be made. */
export type Assign = (frame: Frame, value: Value) => void

/** Turns what stands left of `=` into a function that assigns to it. */
export function assignTo(target: Expression, scope: Scope): Assign {
  switch (target.kind) {
    case 'name':
      return assignToName(target.name, scope)
    case 'attribute': {
      const object = compileExpression(target.object, scope)
      return (frame, value) => setAttribute(object(frame), target.name, value)
    }
    case 'subscript': {
      const object = compileExpression(target.object, scope)
      const index = compileExpression(target.index, scope)
      return (frame, value) => setItem(object(frame), index(frame), value)
    }
    case 'tuple':
    case 'list': {
      const parts = target.items.map(item => assignTo(item, scope))
      return (frame, value) => {
        const items = unpack(value, parts.length)
        for (const [at, part] of parts.entries()) part(frame, items[at] as Value)
      }
    }
    default:
      throw new SourceError(`Nothing can be assigned to a ${target.kind}`)
  }
}

/** Assigns to a name of this scope. */
export function assignToName(name: string, { places }: Scope): Assign {
  const place = places?.get(name)
  if (place === undefined) return (frame, value) => void frame.names?.set(name, value)
  return (frame, value) => {
    frame.slots[place] = value
  }
}
