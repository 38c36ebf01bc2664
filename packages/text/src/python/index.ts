export {
  type ArithmeticValue,
  arithmeticDouble,
  evaluateArithmetic,
} from './arithmetic/evaluate.ts'
export {
  asNumber,
  compare,
  compareText,
  equals,
  findKey,
  isText,
  requireHashable,
  typeName,
} from './compare.ts'
export { PythonError, UnsupportedError } from './error.ts'
export { divideInts } from './exact.ts'
export { formatValue } from './format/specification.ts'
export { dumps, JsonError, parseJson } from './json.ts'
export { encodeAscii } from './json-text.ts'
export { parseLiteral } from './literal.ts'
export { requireInt } from './methods/arguments.ts'
export { addPairs, store } from './methods/container.ts'
export { METHODS, methodsOf } from './methods/methods.ts'
export { type SortOptions, sortedItems } from './methods/sorting.ts'
export {
  arithmetic,
  type PythonNumber,
  roundFloat,
  toDouble,
} from './number.ts'
export { absolute, readFloat, round, toFloat, toWhole } from './numbers.ts'
export { add, applySign, type BinaryOperator, calculate } from './operators.ts'
export {
  callMethod,
  iterateData,
  lengthOfData,
  type MethodArguments,
  PLAIN,
} from './plain-language.ts'
export { type RangeParts, readRange, showRange } from './range.ts'
export { encodeAsciiRepr, formatFloat, repr, reprString, str } from './repr.ts'
export type { Language, Runtime } from './runtime.ts'
export type { Input, Method } from './signature.ts'
export { characterAt, pick, pickText, type SliceRange, sliceRange, span } from './slice.ts'
export { literalValue } from './source/literal-value.ts'
export { parseModule } from './source/parse.ts'
export type {
  Argument,
  Block,
  Clause,
  Expression,
  FunctionShape,
  Handler,
  Parameter,
  Statement,
  TextPart,
} from './source/syntax.ts'
export { SourceError } from './source/tokens.ts'
export { formatTime } from './strftime.ts'
export { type ReadTime, readTime } from './strptime.ts'
export { countCharacters, plain } from './text/text.ts'
export {
  fromJavaScript,
  type PythonDict,
  PythonFloat,
  type PythonKey,
  type PythonObject,
  PythonSet,
  PythonText,
  PythonTuple,
  type PythonValue,
  readInt,
  type Text,
  toInt,
  toJavaScript,
  type Value,
} from './value.ts'
