import { formatTime, formatValue, plain, type Runtime, type Text } from '@espalier/text/python'
import { ProgramDate } from './dates.ts'
import { methodNamed } from './methods.ts'
import { RUNTIME } from './runtime.ts'
import { str } from './show.ts'
import { EnumMember, type Named, type Value } from './values.ts'

/** Python's `format(value, specification)`. */
export const format = (value: Value, specification: string): string =>
  plain(formatValue(RUNTIME, value, specification))

/** Python's `text.format(…)`. */
export const formatFields = (text: string, given: readonly Value[], named: Named): string =>
  methodNamed(text, 'format')?.run(text, given, named) as string

/** The text of an object with a format of its own: dates, and members of enums, which are formatted by name. */
export function formatOther(run: Runtime, value: Value, specification: string): Text | undefined {
  if (value instanceof ProgramDate) {
    return specification === '' ? str(value) : formatTime(specification, new Date(value.at))
  }
  return value instanceof EnumMember ? formatValue(run, str(value), specification) : undefined
}
