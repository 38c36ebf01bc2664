import { repr } from '../../python/repr.ts'
import type { PythonValue } from '../../python/value.ts'
import { PythonText } from '../../python/value.ts'
import { holdsForeign } from './foreign.ts'
import { foreignText, fromMarkup } from './text.ts'
import type { Text, Value } from './value.ts'
import { Namespace, TemplateObject, Undefined } from './value.ts'

/** Python's `repr` of a template value. */
export const reprValue = (value: Value): string =>
  showOther(value) ?? repr(value as PythonValue, { other: each => showOther(each as Value) })

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
export function strValue(value: Value): Text {
  if (typeof value === 'string') return value
  if (value instanceof PythonText) return fromMarkup(value)
  if (value instanceof Undefined) return ''
  const text = reprValue(value)
  return typeof value === 'object' && holdsForeign(value) ? foreignText(text) : text
}

/** Jinja's `soft_str`: like `str`, but Markup stays Markup. */
export const softStr = (value: Value): Text =>
  value instanceof PythonText ? value : strValue(value)
