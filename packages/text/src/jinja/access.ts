import { asNumber } from '../python/compare.ts'
import { DICT_METHODS } from '../python/methods/container.ts'
import { methodsOf } from '../python/methods/methods.ts'
import type { Method } from '../python/signature.ts'
import {
  characterAt,
  pick,
  pickText,
  type SliceBounds,
  type SliceRange,
  sliceRange,
  span,
} from '../python/slice.ts'
import { plain } from '../python/text/text.ts'
import { PythonFloat, PythonSet, PythonTuple } from '../python/value.ts'
import { lookUp } from './operations.ts'
import type { Run } from './run.ts'
import { charge, spend } from './run.ts'
import type { Behaviour, Dict, Value } from './value.ts'
import {
  isText,
  Namespace,
  refusedAttribute,
  sequenceItems,
  TemplateObject,
  typeError,
  typeOf,
  Undefined,
  undefinedMember,
} from './value.ts'

/** Jinja's `object.name`: an attribute first, then an item. */
export function getAttribute(object: Value, name: string): Value {
  const found = lookUpAttribute(object, name)
  return found === undefined ? undefinedMember(object, name) : found
}

/** What `object.name` is, if it is anything. */
export function lookUpAttribute(object: Value, name: string): Value | undefined {
  if (object instanceof Undefined) object.raise()
  const attribute = findAttribute(object, name)
  if (attribute !== undefined) return attribute
  return object instanceof Map ? object.get(name) : undefined
}

/** Jinja's `object[key]`: an item first, then an attribute. */
export function getItem(object: Value, key: Value): Value {
  const found = lookUpItem(object, key)
  return found === undefined ? undefinedMember(object, key) : found
}

/** What `object[key]` is, if it is anything. */
export function lookUpItem(object: Value, key: Value): Value | undefined {
  if (Array.isArray(object) && typeof key === 'number') {
    const found = object[key < 0 ? key + object.length : key] as Value | undefined
    if (found !== undefined) return found
  }
  if (object instanceof Undefined) object.raise()
  const item = findItem(object, key)
  if (item !== undefined || !isText(key)) return item
  return findAttribute(object, plain(key))
}

/** Whether a dict has under this name what it holds there and nothing else: no method, nothing refused. */
export const isPlainMember = (name: string): boolean =>
  !INTERNAL.has(name) && !DICT_METHODS.has(name)

/** Names that every Python object answers to and no template may use. */
const INTERNAL = new Set(
  (
    '__class__ __init__ __new__ __doc__ __dict__ __module__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ ' +
    '__hash__ __str__ __repr__ __format__ __getattribute__ __setattr__ __delattr__ __dir__ __sizeof__ ' +
    '__reduce__ __reduce_ex__ __subclasshook__ __init_subclass__ __getitem__ __len__ __iter__ __call__ ' +
    '__globals__ __code__ __self__ __func__ __contains__ __add__ __mul__ __mod__ __getstate__'
  ).split(' '),
)

/** An attribute of the object's class; one that the sandbox refuses gives an undefined value that says so. */
export function findAttribute(object: Value, name: string): Value | undefined {
  if (object instanceof Namespace) {
    const value = object.attributes.get(name)
    return value !== undefined && name.startsWith('_') ? refusedAttribute(object, name) : value
  }
  if (name.startsWith('__') && INTERNAL.has(name)) return refusedAttribute(object, name)
  if (object instanceof TemplateObject) return object.behaviour.attribute?.(name, object.state)
  const methods = methodsOf(object)
  const method = methods?.get(name)
  if (method === undefined) return numberAttribute(object, name) ?? groupAttribute(object, name)
  if (method.changes) return refusedAttribute(object, name)
  return new TemplateObject('builtin_function_or_method', BOUND, { method, object, name })
}

/** A method with the object it was read from. */
interface BoundMethod {
  readonly method: Method
  readonly object: Value
  readonly name: string
}

const BOUND: Behaviour = {
  call: (run, input, state) => {
    const { method, object } = state as BoundMethod
    return method.call(run, object, input) as Value
  },
  show: state => {
    const { name, object } = state as BoundMethod
    return `<built-in method ${name} of ${typeOf(object)} object>`
  },
}

/** The pairs that `groupby` made, whose halves have names. */
const groups = new WeakSet<object>()

/** A group as `groupby` gives it: a tuple whose items are also `grouper` and `list`. */
export function groupTuple(grouper: Value, items: readonly Value[]): PythonTuple<Value> {
  const pair = new PythonTuple([grouper, items])
  groups.add(pair)
  return pair
}

function groupAttribute(object: Value, name: string): Value | undefined {
  if (!(object instanceof PythonTuple) || !groups.has(object)) return undefined
  return name === 'grouper' ? object.items[0] : name === 'list' ? object.items[1] : undefined
}

function numberAttribute(object: Value, name: string): Value | undefined {
  if (asNumber(object) === undefined) return undefined
  if (name === 'real') return typeof object === 'boolean' ? Number(object) : object
  if (name === 'imag') return object instanceof PythonFloat ? new PythonFloat(0) : 0
  return undefined
}

function findItem(object: Value, key: Value): Value | undefined {
  if (object instanceof Map) return findDictItem(object, key)
  const index = toIndex(key)
  if (index === undefined) return undefined
  if (isText(object)) return characterAt(object, index)
  const items = sequenceItems(object)
  if (items) return items[index < 0 ? index + items.length : index]
  if (object instanceof TemplateObject) return object.behaviour.item?.(index)
  return undefined
}

function findDictItem(dict: Dict, key: Value): Value | undefined {
  // Python raises TypeError for unhashable keys, which Jinja treats as a missing item
  const isUnhashable = Array.isArray(key) || key instanceof Map || key instanceof PythonSet
  return isUnhashable ? undefined : lookUp(dict, key)
}

function toIndex(key: Value): number | undefined {
  if (typeof key === 'number') return Number.isInteger(key) ? key : undefined
  return typeof key === 'boolean' ? Number(key) : undefined
}

/** Python's `object[start:stop:step]`. */
export function getSlice(run: Run, object: Value, bounds: SliceBounds): Value {
  if (object instanceof Undefined) object.raise()
  const range = sliceRange(bounds)
  if (isText(object)) {
    charge(run, object)
    if (range.step !== 1) spend(run, 12 * Math.ceil(plain(object).length / Math.abs(range.step)))
    return pickText(object, range)
  }
  const items = sequenceItems(object)
  if (items === undefined) return sliceOfObject(object, range)
  spend(run, items.length)
  const picked = pick(items, range)
  return object instanceof PythonTuple ? new PythonTuple(picked) : picked
}

function sliceOfObject(object: Value, range: SliceRange): Value {
  if (object instanceof TemplateObject) {
    const { slice, length } = object.behaviour
    if (slice && length) {
      return slice(span(length(object.state), range), range.step)
    }
  }
  if (object instanceof Map) return typeError("unhashable type: 'slice'")
  return typeError(`'${typeOf(object)}' object is not subscriptable`)
}
