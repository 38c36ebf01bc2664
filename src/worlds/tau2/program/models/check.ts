import { typeName } from '@espalier/text/python'
import { isEqual, membersOf } from '../operators.ts'
import { repr, showAnnotation } from '../show.ts'
import { TypeForm } from '../type-form.ts'
import {
  BuiltinClass,
  type Dict,
  EnumMember,
  Instance,
  isCallable,
  ProgramClass,
  PythonSet,
  PythonTuple,
  plain,
  type Value,
} from '../values.ts'
import { fillModel } from './model.ts'
import { Refusal, refuse } from './refusal.ts'
import { type Check, scalarChecks } from './scalars.ts'

const known = new WeakMap<object, Check>()

/** The check for an annotation. */
export function checkFor(annotation: Value): Check {
  if (annotation === null) return checkNone
  if (typeof annotation !== 'object') return value => value
  let check = known.get(annotation)
  if (check === undefined) {
    check = makeCheck(annotation)
    known.set(annotation, check)
  }
  return check
}

const checkNone: Check = value =>
  value === null ? null : refuse('none_required', 'Input should be None', value)

function makeCheck(annotation: Value): Check {
  if (annotation instanceof TypeForm) return checkForm(annotation)
  if (annotation instanceof BuiltinClass)
    return scalarChecks.get(annotation.name) ?? checkBuiltin(annotation.name)
  if (!(annotation instanceof ProgramClass)) return value => value
  if (annotation.kind === 'enum') return value => checkMember(annotation, value)
  return value => checkModel(annotation, value)
}

function checkBuiltin(name: string): Check {
  if (name === 'dict') return value => checkDict(value)
  if (name === 'list') return value => checkList(value)
  return value => value
}

function checkForm({ kind, items }: TypeForm): Check {
  switch (kind) {
    case 'list': {
      const item = items[0] === undefined ? undefined : checkFor(items[0])
      return value => checkList(value, item)
    }
    case 'dict': {
      const [key, item] = [items[0], items[1]].map(one =>
        one === undefined ? undefined : checkFor(one),
      )
      return value => checkDict(value, key, item)
    }
    case 'union':
      return checkUnion(items)
    case 'literal':
      return value => checkLiteral(items, value)
    case 'annotated':
      return checkFor(items[0] as Value)
    case 'callable':
      return value =>
        isCallable(value) ? value : refuse('callable_type', 'Input should be callable', value)
    default:
      return value => value
  }
}

function checkList(value: Value, item?: Check): Value | Refusal {
  const items = Array.isArray(value)
    ? value
    : value instanceof PythonTuple || value instanceof PythonSet
      ? value.items
      : undefined
  if (items === undefined) return refuse('list_type', 'Input should be a valid list', value)
  if (item === undefined) return [...items] as Value[]
  const problems: Refusal[] = []
  const checked = (items as readonly Value[]).map((one, index) => {
    const result = item(one)
    if (!(result instanceof Refusal)) return result
    problems.push(result.at(String(index)))
    return null
  })
  return problems.length === 0 ? checked : joined(problems)
}

const joined = (refusals: readonly Refusal[]): Refusal =>
  new Refusal(refusals.flatMap(({ problems }) => problems))

function checkDict(value: Value, key?: Check, item?: Check): Value | Refusal {
  if (!(value instanceof Map))
    return refuse('dict_type', 'Input should be a valid dictionary', value)
  const checked: Dict = new Map()
  const problems: Refusal[] = []
  for (const [name, one] of value) {
    const newKey = key ? key(name) : name
    const newItem = item ? item(one) : one
    if (newKey instanceof Refusal) problems.push(newKey.at('[key]').at(String(name)))
    if (newItem instanceof Refusal) problems.push(newItem.at(String(name)))
    if (!(newKey instanceof Refusal) && !(newItem instanceof Refusal)) checked.set(newKey, newItem)
  }
  return problems.length === 0 ? checked : joined(problems)
}

/** `Optional` says why its other type refuses; a wider union says it for every type. */
function checkUnion(items: readonly Value[]): Check {
  const types = flattened(items)
  const isOptional = types.includes(null)
  const others = types.filter(type => type !== null)
  const checks = others.map(type => ({ type, check: checkFor(type) }))
  return value => {
    if (value === null && isOptional) return null
    const exact = checks.find(({ type }) => isExactly(value, type))
    if (exact) return exact.check(value)
    const refusals: Refusal[] = []
    for (const { type, check } of checks) {
      const result = check(value)
      if (!(result instanceof Refusal)) return result
      refusals.push(checks.length === 1 ? result : result.at(labelOf(type)))
    }
    return joined(refusals)
  }
}

function flattened(items: readonly Value[]): readonly Value[] {
  return items.flatMap(item => {
    if (item instanceof TypeForm && item.kind === 'annotated')
      return flattened([item.items[0] as Value])
    return item instanceof TypeForm && item.kind === 'union' ? flattened(item.items) : [item]
  })
}

/** Whether a value already is of the type, so that no other type of a union is tried before. */
function isExactly(value: Value, type: Value): boolean {
  if (type instanceof BuiltinClass) return typeName(plain(value)) === type.name
  return (
    type instanceof ProgramClass &&
    (value instanceof Instance || value instanceof EnumMember) &&
    value.class === type
  )
}

function labelOf(type: Value): string {
  if (type instanceof ProgramClass || type instanceof BuiltinClass) return type.name
  return showAnnotation(type).replace(/^List/, 'list').replace(/^Dict/, 'dict')
}

function checkLiteral(items: readonly Value[], value: Value): Value | Refusal {
  for (const item of items) {
    if (typeof item === typeof value && isEqual(item, value)) return item
    if (value instanceof EnumMember && isEqual(item, value)) return item
  }
  return refuse('literal_error', `Input should be ${alternatives(items.map(repr))}`, value)
}

function alternatives(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`
}

function checkMember(of: ProgramClass, value: Value): Value | Refusal {
  const members = membersOf(of)
  const found = members.find(member => member === value || isEqual(member.value, value))
  if (found) return found
  return refuse(
    'enum',
    `Input should be ${alternatives(members.map(member => repr(member.value)))}`,
    value,
  )
}

function checkModel(of: ProgramClass, value: Value): Value | Refusal {
  if (value instanceof Instance && value.class.isWithin(of)) return value
  if (value instanceof Map) return fillModel(of, value)
  return refuse('model_type', `Input should be a valid dictionary or instance of ${of.name}`, value)
}
