import { dumps } from '../python/json.ts'
import { parseLiteral } from '../python/literal.ts'
import { isJson } from './json.ts'
import { type ParameterType, type Schema, schemaTypes } from './schema.ts'

/** How a format reads raw text if the schema leaves it open. */
export interface ValueRule {
  /**
   * A parameter that the schema does not declare. Objects, lists, flags and null are read as such;
   * what looks like a number is `text`, or `json` in formats whose models mean numbers.
   */
  readonly undeclared: 'text' | 'json'
  /** A parameter that may be a string or something else: text, or the other type if it fits. */
  readonly union: 'text' | 'typed' | 'json'
  /**
   * What is removed from the ends of a value that is read as text although its schema does not declare
   * a string: all white space, line breaks, or nothing. @default nothing
   */
  readonly strips?: 'space' | 'lines'
  /** Whether values may be written as Python writes them, besides JSON. @default true */
  readonly literals?: boolean
}

/** A raw value as JSON text, typed by its schema. */
export function toJsonValue(raw: string, schema: Schema, rule: ValueRule): string {
  const types = schemaTypes(schema)
  const trimmed = raw.trim()
  const asText = (): string => JSON.stringify(stripped(raw, rule))
  if (schema === undefined || types.size === 0) {
    const plain = rule.undeclared === 'text' && !/^(?:[[{]|true$|false$|null$)/.test(trimmed)
    return !plain && isJson(trimmed) ? trimmed : asText()
  }
  if (trimmed === 'null' && (types.has('null') || !types.has('string'))) return 'null'
  if (!types.has('string')) return decoded(trimmed, types, rule) ?? asText()
  const others = [...types].some(type => type !== 'string' && type !== 'null')
  if (!others || rule.union === 'text') return JSON.stringify(raw)
  if (rule.union === 'json') return isJson(trimmed) ? trimmed : asText()
  const value = decoded(trimmed, types, rule)
  return value !== undefined && fits(value, types) ? value : asText()
}

function stripped(raw: string, { strips }: ValueRule): string {
  if (strips === undefined) return raw
  return strips === 'space' ? raw.trim() : raw.replace(/^\n+|\n+$/g, '')
}

/** A value that is not a string, as JSON text: written as JSON, or as Python writes it. */
function decoded(
  text: string,
  types: ReadonlySet<ParameterType>,
  { literals = true }: ValueRule,
): string | undefined {
  if (isJson(text)) return text
  if (types.has('boolean') && /^(?:true|false)$/i.test(text)) return text.toLowerCase()
  return literals ? fromPython(text) : undefined
}

/** A Python literal as JSON text; undefined if it is none or JSON has no such value. */
export function fromPython(text: string): string | undefined {
  try {
    const json = dumps(parseLiteral(text), { ensureAscii: false })
    return isJson(json) ? json : undefined
  } catch {
    return undefined
  }
}

function fits(json: string, types: ReadonlySet<ParameterType>): boolean {
  if (json.startsWith('{')) return types.has('object')
  if (json.startsWith('[')) return types.has('array')
  if (json.startsWith('"')) return types.has('string')
  if (json === 'true' || json === 'false') return types.has('boolean')
  return types.has('number') || (types.has('integer') && /^-?\d+$/.test(json))
}
