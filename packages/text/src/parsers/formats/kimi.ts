import type { ToolDefinition } from '../../message.ts'
import { type Broken, broken, callWithArguments } from '../call.ts'
import { jsonMembers, jsonValue } from '../json.ts'
import type { ParsedCall } from '../parser.ts'

/** The id that Kimi K2 writes before the arguments: `functions.NAME:3`, or only the counter. */
const id = /^(?:functions\.)?(.*?)(?::(\d+))?$/s

/** A call from its id and arguments. If the id is a bare counter, the arguments must identify the tool. */
export function kimiCall(
  head: string,
  object: string,
  schemas: readonly ToolDefinition[],
): ParsedCall | Broken {
  const name = /^\d+$/.test(head) ? toolWith(object, schemas) : id.exec(head)?.[1]
  if (!name) return broken(`the id ${JSON.stringify(head)} names no tool`)
  const call = callWithArguments(name, object)
  return call.kind === 'call' ? { ...call, id: head } : call
}

/** The only tool that takes all these arguments. */
function toolWith(object: string, schemas: readonly ToolDefinition[]): string | undefined {
  const keys = object.startsWith('{') ? [...jsonMembers(jsonValue(object)).keys()] : []
  const fitting = schemas.filter(schema => {
    const properties = schema.function.parameters.properties
    if (typeof properties !== 'object' || properties === null) return keys.length === 0
    return keys.every(key => Object.hasOwn(properties, key))
  })
  return fitting.length === 1 ? fitting[0]!.function.name : undefined
}
