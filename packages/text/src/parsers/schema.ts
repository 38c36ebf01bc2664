import type { ToolDefinition } from '../message.ts'

/** The types of JSON schema that a parameter may have. */
export type ParameterType =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'object'
  | 'array'
  | 'null'

/** What a JSON schema says about a value; undefined if nothing is said. */
export type Schema = Readonly<Record<string, unknown>> | undefined

const known: ReadonlySet<unknown> = new Set<ParameterType>([
  'string',
  'integer',
  'number',
  'boolean',
  'object',
  'array',
  'null',
])

/** The schema of one parameter; undefined if the tool or the parameter is not declared. */
export function parameterSchema(
  schemas: readonly ToolDefinition[],
  tool: string,
  parameter: string,
): Schema {
  const definition = schemas.find(schema => schema.function.name === tool)
  return propertySchema(definition?.function.parameters, parameter)
}

/** The schema of an object's property. */
export function propertySchema(schema: Schema, property: string): Schema {
  const properties = asSchema(schema?.properties)
  return properties && Object.hasOwn(properties, property)
    ? (asSchema(properties[property]) ?? {})
    : undefined
}

/** The schema of an array's items. */
export const itemSchema = (schema: Schema): Schema => asSchema(schema?.items)

/** Every type that the schema allows; empty if it says none. */
export function schemaTypes(schema: Schema, depth = 0): ReadonlySet<ParameterType> {
  const types = new Set<ParameterType>()
  if (!schema || depth > 8) return types
  const add = (found: Iterable<ParameterType>) => {
    for (const type of found) types.add(type)
  }
  const stated = schema.type
  add((Array.isArray(stated) ? stated : [stated]).filter(type => known.has(type)))
  for (const choice of [schema.anyOf, schema.oneOf, schema.allOf]) {
    if (Array.isArray(choice)) {
      for (const option of choice) add(schemaTypes(asSchema(option), depth + 1))
    }
  }
  if (types.size > 0) return types
  if (Array.isArray(schema.enum)) add(schema.enum.map(typeOf))
  if (asSchema(schema.properties)) types.add('object')
  if (asSchema(schema.items)) types.add('array')
  return types
}

function typeOf(value: unknown): ParameterType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value === 'string' || typeof value === 'boolean'
    ? (typeof value as 'string' | 'boolean')
    : 'object'
}

const asSchema = (value: unknown): Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
