import type { Language, Runtime } from '../python/runtime.ts'
import type { PythonKey } from '../python/value.ts'
import { getAttribute, getItem } from './access.ts'
import { dictView } from './dict.ts'
import { copyDict } from './foreign.ts'
import { walk } from './iteration.ts'
import { findIn, isEqual, isOrdered } from './operations.ts'
import { type Run, renew, tooLong } from './run.ts'
import { printable, printableRepr } from './show.ts'
import { type Dict, typeError, Undefined, type Value } from './value.ts'

// Every runtime of this language is a rendering, and every value in it one of a template.
const runOf = (run: Runtime): Run => run as Run
const own = (value: unknown): Value => value as Value
const dictOf = (dict: unknown): Dict => dict as Map<PythonKey, Value>

/** What templates do in their own way: they count their work, and have undefined values and foreign keys. */
export const TEMPLATE_LANGUAGE: Language = {
  renew: run => renew(runOf(run)),
  tooLong,
  refuse: value => {
    if (value instanceof Undefined) value.raise()
  },
  iterate: (run, value) => walk(runOf(run), own(value)),
  str: (run, value) => printable(runOf(run), own(value)),
  repr: (run, value) => printableRepr(runOf(run), own(value)),
  isEqual: (run, left, right) => isEqual(runOf(run), own(left), own(right)),
  isLess: (run, left, right) => isOrdered(runOf(run), '<', [own(left), own(right)]),
  format: () => undefined,
  attribute: (value, name) => getAttribute(own(value), name),
  item: (value, key) => getItem(own(value), key),
  find: (dict, key) => findIn(dictOf(dict), own(key)),
  view: (dict, part) => dictView(dictOf(dict), part),
  copy: dict => copyDict(dictOf(dict)),
  touch: () => typeError('The sandbox refuses this method.'),
  call: () => typeError('Templates have no functions to pass.'),
}
