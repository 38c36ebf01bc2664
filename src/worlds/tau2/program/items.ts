import {
  asNumber,
  characterAt,
  countCharacters,
  PythonFloat,
  pick,
  pickText,
  sliceRange,
  span,
} from '@espalier/text/python'
import { ProgramRange } from './iterables.ts'
import { iterate, keyIn, nameOf, requireKey } from './operators.ts'
import { repr } from './show.ts'
import { TypeForm } from './type-form.ts'
import {
  BuiltinClass,
  type Dict,
  EnumMember,
  ProgramBytes,
  ProgramClass,
  PythonError,
  PythonTuple,
  typeError,
  unwrap,
  type Value,
} from './values.ts'
import { touch } from './versions.ts'

/** The bounds of a slice, `null` if none is written. */
export interface Slice {
  readonly from: Value
  readonly to: Value
  readonly step: Value
}

/** Python's `object[index]`. */
export function itemOf(object: Value, index: Value): Value {
  const known = unwrap(object)
  if (known instanceof Map) return dictItem(known, index)
  if (Array.isArray(known)) return known[place(known.length, index, 'list')] as Value
  if (known instanceof PythonTuple)
    return known.items[place(known.items.length, index, 'tuple')] as Value
  if (typeof known === 'string') return textItem(known, index)
  if (known instanceof ProgramRange) return known.at(place(known.length, index, 'range object'))
  if (known instanceof ProgramClass && known.kind === 'enum') {
    const member = typeof index === 'string' ? known.attributes.get(index) : undefined
    if (member instanceof EnumMember) return member
    throw new PythonError('KeyError', repr(index))
  }
  const form = genericOf(known, index)
  if (form) return form
  throw typeError(`'${nameOf(object)}' object is not subscriptable`)
}

function dictItem(dict: Dict, key: Value): Value {
  const value = dict.get(key)
  if (value !== undefined) return value
  const known = keyIn(dict, key)
  if (known === undefined) throw new PythonError('KeyError', repr(key))
  return dict.get(known) as Value
}

/** `list[str]` and the like, in annotations. */
function genericOf(type: Value, index: Value): TypeForm | undefined {
  const items = index instanceof PythonTuple ? index.items : [index]
  if (type instanceof TypeForm) {
    const isOptional = type.spelling === 'Optional'
    return new TypeForm(
      type.kind,
      isOptional ? 'Union' : type.spelling,
      isOptional ? [...items, null] : items,
    )
  }
  if (!(type instanceof BuiltinClass)) return undefined
  const { name } = type
  const isContainer = name === 'list' || name === 'dict' || name === 'tuple' || name === 'set'
  return isContainer || name === 'type'
    ? new TypeForm(isContainer ? name : 'other', name, items)
    : undefined
}

function place(
  length: number,
  index: Value,
  kind: 'list' | 'tuple' | 'string' | 'range object',
): number {
  const number = asNumber(index)
  if (number === undefined || number instanceof PythonFloat) {
    throw typeError(
      kind === 'string'
        ? `string indices must be integers, not '${nameOf(index)}'`
        : `${kind} indices must be integers or slices, not ${nameOf(index)}`,
    )
  }
  const at = Number(number) < 0 ? Number(number) + length : Number(number)
  if (at < 0 || at >= length) throw new PythonError('IndexError', `${kind} index out of range`)
  return at
}

function textItem(text: string, index: Value): Value {
  return characterAt(text, place(countCharacters(text), index, 'string')) as string
}

/** Python's `object[from:to:step]`. */
export function sliceOf(object: Value, slice: Slice): Value {
  const known = unwrap(object)
  const range = sliceRange([slice.from, slice.to, slice.step])
  if (typeof known === 'string') return pickText(known, range) as string
  if (Array.isArray(known)) return pick(known, range)
  if (known instanceof PythonTuple) return new PythonTuple(pick(known.items, range))
  if (known instanceof ProgramRange) {
    const { first, last, count } = span(known.length, range)
    const step = known.step * range.step
    return new ProgramRange({ start: known.at(first), stop: known.at(last), step, length: count })
  }
  if (known instanceof ProgramBytes)
    return new ProgramBytes(Buffer.from(pick([...known.data], range)))
  if (known instanceof Map) throw typeError("unhashable type: 'slice'")
  throw typeError(`'${nameOf(object)}' object is not subscriptable`)
}

/** Python's `object[index] = value`. */
export function setItem(object: Value, index: Value, value: Value): void {
  if (object instanceof Map) {
    requireKey(index)
    touch(object)
    object.set(keyIn(object, index) ?? index, value)
  } else if (Array.isArray(object)) {
    const at = place(object.length, index, 'list')
    touch(object)
    object[at] = value
  } else throw typeError(`'${nameOf(object)}' object does not support item assignment`)
}

/** Python's `del object[index]`. */
export function deleteItem(object: Value, index: Value): void {
  if (object instanceof Map) {
    const key = keyIn(object, index)
    if (key === undefined) throw new PythonError('KeyError', repr(index))
    touch(object)
    object.delete(key)
  } else if (Array.isArray(object)) {
    const at = place(object.length, index, 'list')
    touch(object)
    object.splice(at, 1)
  } else throw typeError(`'${nameOf(object)}' object doesn't support item deletion`)
}

/** The items of a value, as many as are asked for, or Python's ValueError. */
export function unpack(value: Value, count: number): readonly Value[] {
  let items: Value[]
  try {
    items = [...iterate(value)]
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    throw typeError(`cannot unpack non-iterable ${nameOf(value)} object`)
  }
  if (items.length === count) return items
  throw new PythonError(
    'ValueError',
    items.length > count
      ? `too many values to unpack (expected ${count})`
      : `not enough values to unpack (expected ${count}, got ${items.length})`,
  )
}
