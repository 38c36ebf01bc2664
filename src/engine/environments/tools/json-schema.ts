import { createRequire } from 'node:module'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { schemaPattern } from './schema-pattern.ts'
import { withinTime } from './within-time.ts'

/** A JSON schema as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** Loaded with the first plain JSON schema: most programs never use one. */
const load = createRequire(import.meta.url) as <Package>(name: string) => Package

const compiled = new Map<string, ValidateFunction>()
const mostCompiled = 1000

/** Milliseconds in which a schema must be read, and in which a value must be checked by it. */
const deadlines = { read: 5000, check: 500 }

/**
 * A validator for a plain JSON schema: returns what is wrong with a value; empty if nothing.
 * Schemas without `$schema` are read as draft 2020-12. Formats are not checked.
 */
export function validatorOf(schema: JsonSchema): (value: unknown) => readonly string[] {
  const validate = compile(schema)
  const check = (value: unknown): readonly string[] =>
    validate(value) ? [] : (validate.errors ?? []).slice(0, mostErrors).map(describeError)
  const isSlow = mayBeSlow(JSON.stringify(schema))
  return value => {
    if (!isSlow && isSmall(value)) return check(value)
    const problems = withinTime(deadlines.check, () => check(value))
    return problems ?? ['takes too long to be checked by its schema']
  }
}

/** Most problems reported for one value. */
const mostErrors = 100

/** Whether checking may take more than linear time: the schema refers to parts again, or compares items. */
function mayBeSlow(schema: string): boolean {
  return (
    schema.length > 10_000 || /"(?:\$ref|\$dynamicRef|\$recursiveRef|uniqueItems)"/.test(schema)
  )
}

/** Whether a value has few parts: many parts could each give many problems. */
function isSmall(value: unknown): boolean {
  const left = [value]
  for (let count = 0; left.length > 0; count++) {
    const next = left.pop()
    if (typeof next !== 'object' || next === null) continue
    const parts = Object.values(next)
    if (count + left.length + parts.length > 1000) return false
    for (const part of parts) left.push(part)
  }
  return true
}

function compile(schema: JsonSchema): ValidateFunction {
  const key = JSON.stringify(schema)
  const known = compiled.get(key)
  if (known) return known
  const options = {
    strict: false,
    allErrors: true,
    validateFormats: false,
    logger: false,
    code: { regExp: schemaPattern },
  } as const
  // One instance per schema: an instance keeps every schema it has seen, and refuses equal $ids.
  const isOld = /draft-0[4-7]/.test(String(schema.$schema ?? ''))
  const { $schema: _, ...rules } = schema
  const reader = isOld
    ? new (load<typeof import('ajv')>('ajv').Ajv)(options)
    : new (load<typeof import('ajv/dist/2020.js')>('ajv/dist/2020.js').Ajv2020)(options)
  const validate = withinTime(deadlines.read, () => reader.compile(rules))
  if (!validate) throw new Error('The JSON schema takes too long to be read')
  const oldest = compiled.keys().next()
  if (compiled.size >= mostCompiled && !oldest.done) compiled.delete(oldest.value)
  compiled.set(key, validate)
  return validate
}

function describeError({ instancePath, message, params, keyword }: ErrorObject): string {
  const path = instancePath.slice(1).replaceAll('/', '.')
  const detail =
    keyword === 'additionalProperties'
      ? `has no property "${params.additionalProperty}"`
      : keyword === 'enum'
        ? `must be one of ${JSON.stringify(params.allowedValues)}`
        : (message ?? keyword)
  return path ? `${path}: ${detail}` : detail
}

/** A tool's parameters in one line, `sell(pears: integer, note?: string)`, for people and policies. */
export function signatureOf(name: string, parameters: JsonSchema): string {
  return `${name}(${propertiesOf(parameters, 2)})`
}

function propertiesOf(schema: JsonSchema, depth: number): string {
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(asSchema(schema.properties))
    .map(([key, type]) => `${key}${required.includes(key) ? '' : '?'}: ${typeOf(type, depth)}`)
    .join(', ')
}

function typeOf(value: unknown, depth: number): string {
  const schema = asSchema(value)
  const alternatives = schema.anyOf ?? schema.oneOf
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return oneOf(schema.enum.map(item => JSON.stringify(item)))
  if (depth <= 0) return String(schema.type ?? 'value')
  if (Array.isArray(alternatives)) return oneOf(alternatives.map(item => typeOf(item, depth - 1)))
  if (Array.isArray(schema.type)) return oneOf(schema.type.map(String))
  if (schema.type === 'array') return `${typeOf(schema.items, depth - 1)}[]`
  if (schema.type === 'object' && schema.properties) return `{ ${propertiesOf(schema, depth - 1)} }`
  return String(schema.type ?? 'value')
}

function oneOf(types: readonly string[]): string {
  const shown = [...new Set(types)]
  return shown.length > 12 ? `${shown.slice(0, 12).join(' | ')} | …` : shown.join(' | ')
}

function asSchema(value: unknown): JsonSchema {
  return isRecord(value) ? value : {}
}

/** Whether a value is an object that is neither `null` nor a list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
