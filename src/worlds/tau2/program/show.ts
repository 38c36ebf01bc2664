import { repr as pythonRepr, showRange } from '@espalier/text/python'
import { ProgramDate, TimeDelta } from './dates.ts'
import { DictView, ProgramRange } from './iterables.ts'
import { TypeForm } from './type-form.ts'
import {
  BoundMethod,
  BuiltinClass,
  EnumMember,
  ExceptionClass,
  Instance,
  Native,
  ProgramClass,
  ProgramFunction,
  ProgramObject,
  PythonError,
  plain,
  unwrap,
  type Value,
} from './values.ts'

/** Python's `repr`. */
export function repr(value: Value): string {
  if (value instanceof PythonError) return `${value.type}(${pythonRepr(value.message)})`
  return pythonRepr(plain(value), { other: showObject })
}

/** Python's `str`. */
export function str(value: Value): string {
  if (typeof value === 'string') return value
  if (value instanceof PythonError) return value.message
  if (value instanceof EnumMember) return `${value.class.name}.${value.name}`
  if (value instanceof ProgramDate || value instanceof TimeDelta) return value.text()
  if (value instanceof Instance && value.class.kind === 'model') return showFields(value, ' ')
  return repr(value)
}

function showObject(value: unknown): string | undefined {
  if (value instanceof PythonError) return repr(value)
  if (!(value instanceof ProgramObject)) return undefined
  if (value instanceof EnumMember) {
    return `<${value.class.name}.${value.name}: ${repr(value.value)}>`
  }
  if (value instanceof ProgramDate) return `datetime.${value.type}(${value.shown.join(', ')})`
  if (value instanceof TimeDelta) return showSpan(value)
  if (value instanceof ProgramRange) return showRange(value)
  if (value instanceof DictView) return `dict_${value.part}(${repr([...value])})`
  if (value instanceof Instance && value.class.kind === 'model') {
    return `${value.class.name}(${showFields(value, ', ')})`
  }
  return showType(value) ?? `<${value.type} object>`
}

function showSpan({ days, seconds, microseconds }: TimeDelta): string {
  const parts = Object.entries({ days, seconds, microseconds }).filter(([, count]) => count !== 0)
  const written = parts.map(([name, count]) => `${name}=${count}`).join(', ')
  return `datetime.timedelta(${written === '' ? '0' : written})`
}

function showFields({ fields }: Instance, between: string): string {
  return Array.from(fields, ([name, field]) => `${name}=${repr(field)}`).join(between)
}

function showType(value: ProgramObject): string | undefined {
  if (value instanceof ProgramClass) return `<class '${value.module}.${value.name}'>`
  if (value instanceof BuiltinClass || value instanceof ExceptionClass)
    return `<class '${value.name}'>`
  if (value instanceof ProgramFunction) return `<function ${value.qualifiedName}>`
  if (value instanceof Native) return `<built-in function ${value.name}>`
  if (value instanceof BoundMethod) {
    const { called } = value
    const name = called instanceof ProgramFunction ? called.qualifiedName : called.name
    return `<bound method ${name} of ${repr(value.self)}>`
  }
  return value instanceof TypeForm ? showAnnotation(value) : undefined
}

/** A type as `inspect` prints it in a signature. */
export function showAnnotation(type: Value): string {
  if (type === null) return 'None'
  if (typeof type === 'string') return repr(type)
  if (type instanceof ProgramClass) return `${type.module}.${type.name}`
  if (type instanceof BuiltinClass) return type.name
  if (!(type instanceof TypeForm)) return repr(type)
  return showForm(type)
}

function showForm({ kind, spelling, items }: TypeForm): string {
  const shown = items.map(item => (kind === 'literal' ? repr(unwrap(item)) : showInner(item)))
  if (kind === 'union') return showUnion(spelling, items, shown)
  if (kind === 'annotated') return `Annotated[${shown.join(', ')}]`
  return shown.length === 0 ? spelling : `${spelling}[${shown.join(', ')}]`
}

const showInner = (type: Value): string => (type === null ? 'NoneType' : showAnnotation(type))

function showUnion(spelling: string, items: readonly Value[], shown: readonly string[]): string {
  if (spelling === '|') return items.map(item => showAnnotation(item)).join(' | ')
  const others = shown.filter((_, index) => items[index] !== null)
  if (others.length === items.length) return `Union[${shown.join(', ')}]`
  return others.length === 1 ? `Optional[${others[0]}]` : `Union[${shown.join(', ')}]`
}
