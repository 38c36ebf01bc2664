import { sortedEntries } from './dict.ts'
import { reprValue } from './show.ts'
import type { Dict, Value } from './value.ts'
import { isList, sequenceItems } from './value.ts'

const WIDTH = 80

/** Python's `pprint.pformat`: one line where it fits, else one item per line, keys sorted. */
export function prettyPrint(value: Value): string {
  return print(value, 0, 1)
}

function print(value: Value, indent: number, allowance: number): string {
  const line = reprSorted(value)
  if (line.length <= WIDTH - indent - allowance) return line
  if (value instanceof Map && value.size > 0) return printDict(value, indent, allowance)
  const items = sequenceItems(value)
  if (!items || items.length === 0) return line
  const [open, close] = isList(value) ? ['[', ']'] : ['(', items.length === 1 ? ',)' : ')']
  const rows = items.map((item, index) =>
    print(item, indent + 1, index === items.length - 1 ? allowance + close.length : 1),
  )
  return open + rows.join(`,\n${' '.repeat(indent + 1)}`) + close
}

function printDict(dict: Dict, indent: number, allowance: number): string {
  const entries = sortedEntries(dict)
  const rows = entries.map(([key, item], index) => {
    const name = reprValue(key)
    const rest = index === entries.length - 1 ? allowance + 1 : 1
    return `${name}: ${print(item, indent + name.length + 3, rest)}`
  })
  return `{${rows.join(`,\n${' '.repeat(indent + 1)}`)}}`
}

function reprSorted(value: Value): string {
  if (value instanceof Map) {
    const pairs = sortedEntries(value).map(
      ([key, item]) => `${reprValue(key)}: ${reprSorted(item)}`,
    )
    return `{${pairs.join(', ')}}`
  }
  const items = sequenceItems(value)
  if (!items) return reprValue(value)
  const inner = items.map(reprSorted).join(', ')
  if (isList(value)) return `[${inner}]`
  return items.length === 1 ? `(${inner},)` : `(${inner})`
}
