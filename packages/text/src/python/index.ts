export {
  asNumber,
  compare,
  compareText,
  equals,
  findKey,
  requireHashable,
  typeName,
} from './compare.ts'
export { PythonError } from './error.ts'
export { decompose, divideInts, floorDivideFloats, scale } from './exact.ts'
export { dumps, JsonError, parseJson } from './json.ts'
export { encodeAscii } from './json-text.ts'
export { readLiteral } from './literal.ts'
export { unescapeString } from './literal-string.ts'
export {
  arithmetic,
  negate,
  type PythonNumber,
  roundFloat,
  roundToInt,
  toDouble,
} from './number.ts'
export { formatFloat, repr, reprString, str } from './repr.ts'
export {
  fromJavaScript,
  type PythonDict,
  PythonFloat,
  type PythonKey,
  PythonSet,
  PythonTuple,
  type PythonValue,
  readInt,
  toInt,
  toJavaScript,
} from './value.ts'
