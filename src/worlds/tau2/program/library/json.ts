import { dumps, PythonFloat, parseJson, toDouble } from '@espalier/text/python'
import { isTrue, nameOf } from '../operators.ts'
import { str } from '../show.ts'
import {
  type Dict,
  ExceptionClass,
  Module,
  type Named,
  Native,
  ProgramObject,
  PythonSet,
  PythonTuple,
  plain,
  typeError,
  unwrap,
  type Value,
} from '../values.ts'

/** What `json.dumps` can write: enums by their values, whatever else is an object by `fallback`. */
export function jsonable(value: Value, fallback?: (value: Value) => Value): Value {
  const known = unwrap(value)
  if (typeof known !== 'object' || known === null || known instanceof PythonFloat) return known
  if (Array.isArray(known)) return known.map(item => jsonable(item, fallback))
  if (known instanceof PythonTuple) return known.items.map(item => jsonable(item, fallback))
  if (known instanceof Map) {
    const dict: Dict = new Map()
    for (const [key, item] of known) dict.set(unwrap(key), jsonable(item, fallback))
    return dict
  }
  const isOther = known instanceof ProgramObject || known instanceof PythonSet
  if (isOther && fallback) return jsonable(fallback(known), fallback)
  throw typeError(`Object of type ${nameOf(known)} is not JSON serializable`)
}

function write([value]: readonly Value[], named: Named): string {
  const hasDefault = (named.get('default') ?? null) !== null
  const indent = named.get('indent') ?? null
  return dumps(plain(jsonable(value as Value, hasDefault ? str : undefined)), {
    indent: indent as number | string | null,
    sortKeys: isTrue(named.get('sort_keys') ?? false),
    ensureAscii: isTrue(named.get('ensure_ascii') ?? true),
  })
}

function read([text]: readonly Value[], named: Named): Value {
  const source = unwrap(text as Value)
  if (typeof source !== 'string') {
    throw typeError(`the JSON object must be str, bytes or bytearray, not ${nameOf(text as Value)}`)
  }
  const value = parseJson(source) as Value
  return named.has('parse_int') ? withFloats(value) : value
}

/** A value with a float for every int. */
function withFloats(value: Value): Value {
  if (typeof value === 'number') return new PythonFloat(value)
  if (typeof value === 'bigint') return new PythonFloat(bigDouble(value))
  if (Array.isArray(value)) return value.map(withFloats)
  if (!(value instanceof Map)) return value
  const dict: Dict = new Map()
  for (const [key, item] of value) dict.set(key, withFloats(item))
  return dict
}

/** `float("1" + "0" * 400)` is infinite, where `float(10 ** 400)` would raise. */
const bigDouble = (value: bigint): number => {
  const double = Number(value)
  return Number.isFinite(double) ? toDouble(value) : double
}

/** Python's `json`. */
export const jsonModule = new Module(
  'json',
  new Map<string, Value>([
    ['dumps', new Native('dumps', write)],
    ['loads', new Native('loads', read)],
    ['JSONDecodeError', new ExceptionClass('JSONDecodeError', ['ValueError'])],
  ]),
)
