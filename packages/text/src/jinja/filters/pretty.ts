import { sortedEntries } from '../dict.ts'
import type { Run } from '../run.ts'
import { chargeDeeply, spendText } from '../run.ts'
import { reprValue } from '../show.ts'
import type { Dict, Value } from '../value.ts'
import { isList, sequenceItems } from '../value.ts'

const WIDTH = 80

/** Python's `pprint.pformat`: one line if it fits, else one item per line, keys sorted. */
export function prettyPrint(run: Run, value: Value): string {
  chargeDeeply(run, value)
  return print({ run, value, indent: 0, allowance: 1 })
}

interface Printing {
  readonly run: Run
  readonly value: Value
  /** Columns already taken on the left, and to be kept free on the right. */
  readonly indent: number
  readonly allowance: number
}

function print({ run, value, indent, allowance }: Printing): string {
  const line = reprSorted(run, value)
  spendText(run, line.length)
  if (line.length <= WIDTH - indent - allowance) return line
  if (value instanceof Map && value.size > 0) {
    return printDict(value, { run, value, indent, allowance })
  }
  const items = sequenceItems(value)
  if (!items || items.length === 0) return line
  const [open, close] = isList(value) ? ['[', ']'] : ['(', items.length === 1 ? ',)' : ')']
  const rows = items.map((item, index) =>
    print({
      run,
      value: item,
      indent: indent + 1,
      allowance: index === items.length - 1 ? allowance + close.length : 1,
    }),
  )
  return open + rows.join(`,\n${' '.repeat(indent + 1)}`) + close
}

function printDict(dict: Dict, { run, indent, allowance }: Printing): string {
  const entries = sortedEntries(run, dict)
  const rows = entries.map(([key, item], index) => {
    const name = reprValue(key)
    const rest = index === entries.length - 1 ? allowance + 1 : 1
    const inner = { run, value: item, indent: indent + name.length + 3, allowance: rest }
    return `${name}: ${print(inner)}`
  })
  return `{${rows.join(`,\n${' '.repeat(indent + 1)}`)}}`
}

function reprSorted(run: Run, value: Value): string {
  if (value instanceof Map) {
    const pairs = sortedEntries(run, value).map(
      ([key, item]) => `${reprValue(key)}: ${reprSorted(run, item)}`,
    )
    return `{${pairs.join(', ')}}`
  }
  const items = sequenceItems(value)
  if (!items) return reprValue(value)
  const inner = items.map(item => reprSorted(run, item)).join(', ')
  if (isList(value)) return `[${inner}]`
  return items.length === 1 ? `(${inner},)` : `(${inner})`
}
