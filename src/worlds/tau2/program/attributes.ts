import { asNumber, PythonFloat } from '@espalier/text/python'
import { call } from './call.ts'
import { ProgramDate, TimeDelta } from './dates.ts'
import { dateAttribute, dateClassAttribute } from './library/datetime.ts'
import { methodNamed, methodOfClass } from './methods.ts'
import { nameOf } from './operators.ts'
import {
  BoundMethod,
  BuiltinClass,
  ClassMethod,
  EnumMember,
  ExceptionClass,
  Instance,
  Module,
  Native,
  Opaque,
  ProgramBytes,
  ProgramClass,
  ProgramFunction,
  Property,
  PythonError,
  unwrap,
  type Value,
} from './values.ts'
import { touch } from './versions.ts'

/** Python's `object.name`, or its AttributeError. */
export function attributeOf(object: Value, name: string): Value {
  const value = findAttribute(object, name)
  if (value !== undefined) return value
  throw missingAttribute(object, name)
}

function missingAttribute(object: Value, name: string): PythonError {
  if (object instanceof ProgramClass) {
    return new PythonError(
      'AttributeError',
      `type object '${object.name}' has no attribute '${name}'`,
    )
  }
  if (object instanceof Module) {
    return new PythonError('AttributeError', `module '${object.name}' has no attribute '${name}'`)
  }
  return new PythonError('AttributeError', `'${nameOf(object)}' object has no attribute '${name}'`)
}

/** The attribute, or `undefined` if there is none. */
export function findAttribute(object: Value, name: string): Value | undefined {
  if (object instanceof Instance) {
    const value = object.fields.get(name)
    return value === undefined ? instanceAttribute(object, name) : value
  }
  if (object instanceof Module) return object.scope.get(name)
  if (object instanceof ProgramClass) return classAttribute(object, name)
  if (object instanceof EnumMember) return memberAttribute(object, name)
  if (object instanceof Opaque) return object.members.get(name)
  if (object instanceof ProgramBytes && name === 'hex')
    return new Native(name, () => object.data.toString('hex'))
  if (object instanceof ProgramFunction || object instanceof BoundMethod)
    return functionAttribute(object, name)
  if (object instanceof ProgramDate || object instanceof TimeDelta)
    return dateAttribute(object, name)
  if (object instanceof BuiltinClass || object instanceof ExceptionClass)
    return typeAttribute(object, name)
  return methodOf(object, name)
}

function methodOf(value: Value, name: string): Value | undefined {
  const method = methodNamed(value, name)
  return method === undefined ? numberPart(value, name) : new BoundMethod(method, value)
}

/** The parts that Python's numbers have beside their methods. */
function numberPart(value: Value, name: string): Value | undefined {
  const number = asNumber(value)
  if (number === undefined || number instanceof PythonFloat) {
    if (name === 'real') return number
    return name === 'imag' && number !== undefined ? new PythonFloat(0) : undefined
  }
  if (name === 'real' || name === 'numerator') return number
  if (name === 'imag') return 0
  return name === 'denominator' ? 1 : undefined
}

function instanceAttribute(object: Instance, name: string): Value | undefined {
  const found = object.class.find(name)
  if (found !== undefined) return boundTo(found, object, object.class)
  if (name === '__class__') return object.class
  return undefined
}

/** What a class gives an object of it: methods bound, properties read. */
function boundTo(found: Value, object: Value, of: ProgramClass): Value {
  if (found instanceof ProgramFunction || found instanceof Native)
    return new BoundMethod(found, object)
  if (found instanceof Property) return call(found.getter, [object])
  if (found instanceof ClassMethod) return boundToClass(found, of)
  return found
}

function boundToClass({ called, takesClass }: ClassMethod, of: ProgramClass): Value {
  if (!takesClass) return called
  return new BoundMethod(called as ProgramFunction | Native, of)
}

function classAttribute(object: ProgramClass, name: string): Value | undefined {
  const found = object.find(name)
  if (found !== undefined) return found instanceof ClassMethod ? boundToClass(found, object) : found
  if (name === '__name__' || name === '__qualname__') return object.name
  if (name === '__doc__') return object.doc
  if (name === '__module__') return object.module
  if (name === '__members__' && object.kind === 'enum') {
    return new Map([...object.attributes].filter(([, value]) => value instanceof EnumMember))
  }
  return undefined
}

function memberAttribute(member: EnumMember, name: string): Value | undefined {
  if (name === 'value') return member.value
  if (name === 'name') return member.name
  const found = member.class.find(name)
  if (found !== undefined) return boundTo(found, member, member.class)
  const text = unwrap(member)
  return text === member ? undefined : methodOf(text, name)
}

function functionAttribute(object: ProgramFunction | BoundMethod, name: string): Value | undefined {
  const called = object instanceof BoundMethod ? object.called : object
  if (name === '__name__') return called.name
  if (called instanceof Native) return undefined
  if (name === '__doc__') return called.doc
  if (name === '__qualname__') return called.qualifiedName
  if (name === '__self__' && object instanceof BoundMethod) return object.self
  return called.attributes.get(name)
}

function typeAttribute(object: BuiltinClass | ExceptionClass, name: string): Value | undefined {
  if (name === '__name__') return object.name
  if (!(object instanceof BuiltinClass)) return undefined
  const own = dateClassAttribute(object, name)
  if (own !== undefined) return own
  return methodOfClass(object.name, name)
}

/** Python's `object.name = value`. */
export function setAttribute(object: Value, name: string, value: Value): void {
  if (object instanceof Instance) setField(object, name, value)
  else if (object instanceof ProgramFunction) object.attributes.set(name, value)
  else if (object instanceof ProgramClass) {
    touch(object)
    object.attributes.set(name, value)
  } else if (object instanceof Module) object.scope.set(name, value)
  else throw missingAttribute(object, name)
}

function setField(object: Instance, name: string, value: Value): void {
  if (object.class.kind === 'model' && !object.fields.has(name)) {
    throw new PythonError('ValueError', `"${object.class.name}" object has no field "${name}"`)
  }
  touch(object)
  object.fields.set(name, value)
}

/** What `super()` reads: the attribute of the classes above the one that defines the method. */
export function superAttribute(self: Value, owner: ProgramClass, name: string): Value {
  const of = self instanceof ProgramClass ? self : (self as Instance).class
  const above = of.lineage.slice(of.lineage.indexOf(owner) + 1)
  for (const known of above) {
    const found = known.attributes.get(name)
    if (found !== undefined) return boundTo(found, self, of)
  }
  if (name === '__init__') return new Native('__init__', () => null)
  throw new PythonError('AttributeError', `'super' object has no attribute '${name}'`)
}
