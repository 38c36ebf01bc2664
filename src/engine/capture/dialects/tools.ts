import type { ToolDefinition } from '@espalier/text'
import type { ResponseFormat, ToolChoice } from '../contract.ts'
import { most } from './bounds.ts'
import {
  boundedJson,
  type Fields,
  fieldsIn,
  join,
  neededTextIn,
  refuse,
  textIn,
  toFields,
} from './fields.ts'

/** A tool that a client declares: its name, its description, and the schema under `schemaName`. */
export function readTool(fields: Fields, at: string, schemaName: string): ToolDefinition {
  const name = readName(fields, at)
  const description = textIn(fields, 'description', at)
  const schema = fieldsIn(fields, schemaName, at)
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: boundedJson(schema ?? { type: 'object', properties: {} }, join(at, schemaName)),
    },
  }
}

/** The name of a tool. */
export function readName(fields: Fields, at: string): string {
  const name = neededTextIn(fields, 'name', at)
  if (name.length > 0 && name.length <= most.nameLength) return name
  return refuse(join(at, 'name'), `must have 1 to ${most.nameLength} characters`)
}

/** A choice of one tool, which must be among those that were declared. */
export function chosenTool(
  name: string,
  tools: readonly ToolDefinition[],
  place: string,
): ToolChoice {
  if (tools.some(tool => tool.function.name === name)) return { tool: name }
  return refuse(place, `names the tool "${name.slice(0, 80)}", which is not in tools`)
}

/** A schema that answers must follow. */
export function jsonSchemaFormat(schema: unknown, at: string): ResponseFormat {
  return { kind: 'json', schema: boundedJson(toFields(schema, at), at) }
}

/** The arguments of a call as JSON text; objects are written out. */
export function argumentsText(value: unknown, place: string): string {
  if (typeof value === 'string') return value
  return JSON.stringify(boundedJson(toFields(value ?? {}, place), place))
}

/** The arguments of a call as an object; anything else is wrapped in one, so that nothing is lost. */
export function argumentsObject(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text === '' ? '{}' : text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
    return { value }
  } catch {
    return { raw: text }
  }
}
