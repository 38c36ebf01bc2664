import { type Language, PythonError, type Runtime } from '@espalier/text/python'
import { attributeOf } from './attributes.ts'
import { call } from './call.ts'
import { formatOther } from './format.ts'
import { itemOf } from './items.ts'
import { DictView } from './iterables.ts'
import { isEqual, isOrdered, iterate, keyIn, requireKey } from './operators.ts'
import { repr, str } from './show.ts'
import type { Dict, Value } from './values.ts'
import { type Mutable, touch } from './versions.ts'

// Every value that meets the room of Python here is one of a program.
const own = (value: unknown): Value => value as Value

/** Texts longer than this stop a program, as they would stop a machine with little memory. */
const LONGEST_TEXT = 100_000_000

/** What programs do in their own way: their objects have classes, and versions that record changes. */
const PROGRAM_LANGUAGE: Language = {
  renew: () => {},
  tooLong: () => {
    throw new PythonError('MemoryError', '')
  },
  refuse: () => {},
  iterate: (_, value) => iterate(own(value)),
  str: (_, value) => str(own(value)),
  repr: (_, value) => repr(own(value)),
  isEqual: (_, left, right) => isEqual(own(left), own(right)),
  isLess: (_, left, right) => isOrdered('<', own(left), own(right)),
  format: (run, value, specification) => formatOther(run, own(value), specification),
  attribute: (value, name) => attributeOf(own(value), name),
  item: (value, key) => itemOf(own(value), key),
  find: (dict, key) => {
    requireKey(own(key))
    return keyIn(dict as Dict, own(key))
  },
  view: (dict, part) => new DictView(dict as Dict, part),
  copy: dict => new Map(dict),
  touch: object => touch(object as Mutable),
  call: (called, argument) => call(own(called), [own(argument)]),
}

/** Python as programs run it: their work is not counted. */
export const RUNTIME: Runtime = {
  steps: Number.POSITIVE_INFINITY,
  limits: { characters: LONGEST_TEXT },
  language: PROGRAM_LANGUAGE,
}
