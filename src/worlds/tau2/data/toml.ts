import { PythonFloat, toInt } from '@espalier/text/python'
import { TomlDate } from 'smol-toml'
import type { ProgramDate } from '../program/dates.ts'
import { readIso } from '../program/library/datetime.ts'
import type { Dict, Value } from '../program/values.ts'

/** What a TOML file holds, as Python's `toml` reads it. */
export function fromToml(value: unknown): Value {
  if (value instanceof TomlDate) return fromDate(value)
  if (Array.isArray(value)) return value.map(fromToml)
  if (typeof value === 'bigint') return toInt(value)
  if (typeof value === 'number') return new PythonFloat(value)
  if (typeof value !== 'object' || value === null) return value as Value
  const dict: Dict = new Map()
  for (const [key, item] of Object.entries(value)) dict.set(key, fromToml(item))
  return dict
}

function fromDate(date: TomlDate): ProgramDate | string {
  const text = date.toISOString().replace(/\.000/, '').replace(/Z$/, '')
  return readIso(text, text.length > 10) ?? text
}
