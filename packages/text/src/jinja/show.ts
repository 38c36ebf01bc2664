import { type ReprOptions, repr } from '../python/repr.ts'
import { sizeOf } from '../python/text/text.ts'
import { PythonText, type PythonValue } from '../python/value.ts'
import { holdsForeign } from './foreign.ts'
import type { Run } from './run.ts'
import { chargeDeeply, spend, spendText } from './run.ts'
import { foreignText, fromMarkup } from './text.ts'
import type { Text, Value } from './value.ts'
import { Namespace, TemplateObject, Undefined } from './value.ts'

/** Python's `repr` of a template value, whatever it costs. */
export const reprValue = (value: Value): string =>
  showOther(value) ?? repr(value as PythonValue, SHOWING)

const SHOWING: ReprOptions = { other: value => showOther(value as Value) }

function showOther(value: Value): string | undefined {
  if (value instanceof Undefined) return 'Undefined'
  if (value instanceof Namespace) {
    const attributes: Value = new Map(value.attributes)
    return `<Namespace ${reprValue(attributes)}>`
  }
  if (value instanceof TemplateObject)
    return value.behaviour.show?.(value.state) ?? `<${value.type} object>`
  return undefined
}

/** Python's `str` of a value. Marks of texts inside it are kept by marking the whole. */
function strValue(run: Run, value: Value): Text {
  if (typeof value === 'string') return value
  if (value instanceof PythonText) return fromMarkup(value)
  if (value instanceof Undefined) return ''
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  const text = reprValue(value)
  const isForeign = typeof value === 'object' && run.variables.foreign && holdsForeign(value)
  return isForeign ? foreignText(text) : text
}

/** Python's `str` of a value, paid for by the size of what had to be made. */
export function printable(run: Run, value: Value): Text {
  if (typeof value === 'string') return value
  if (typeof value === 'object' && !(value instanceof PythonText)) chargeDeeply(run, value)
  const text = strValue(run, value)
  const length = sizeOf(text)
  spendText(run, length)
  if (typeof value === 'object' && !(value instanceof PythonText)) spend(run, 2 * length)
  return text
}

/** Python's `repr` of a value, paid for like `printable`. */
export function printableRepr(run: Run, value: Value): Text {
  chargeDeeply(run, value)
  const text = reprValue(value)
  spendText(run, text.length)
  return holdsForeign(value) ? foreignText(text) : text
}

/** Jinja's `soft_str`: like `printable`, but Markup stays Markup. */
export const softText = (run: Run, value: Value): Text =>
  value instanceof PythonText ? value : printable(run, value)
