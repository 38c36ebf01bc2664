import type { Reply, ToolDefinition } from '@espalier/text'
import { type Random, random, seedOf } from '../../base/math/random.ts'
import type { Player } from './play.ts'
import { replyOf } from './reply.ts'
import { isRecord, type JsonSchema } from './tools/json-schema.ts'

/**
 * A player who tries the tools with inputs made up from their schemas, and now and then makes a
 * mistake: for checks that must hold whatever a policy does.
 */
export function probe(seed: number): Player {
  return ({ tools, turn, task }) => {
    const draw = random(seedOf(seed, 'probe', task.id, turn))
    if (tools.length === 0) return replyOf(`words ${turn}`)
    const count = draw() < 0.3 ? 2 : 1
    return replyOf('', ...Array.from({ length: count }, () => probeCall(tools, draw)))
  }
}

function probeCall(tools: readonly ToolDefinition[], draw: Random) {
  const { name, parameters } = tools[Math.floor(draw() * tools.length)]!.function
  if (draw() < 0.1) return { malformed: `<call>${name}(` }
  return { tool: name, input: makeUp(parameters, draw) }
}

/** Replies that every environment with tools has to answer with an error observation. */
export function mistakesFor(
  tools: readonly ToolDefinition[],
): readonly { readonly problem: string; readonly reply: Reply }[] {
  const strict = tools.find(tool => Array.isArray(tool.function.parameters.required))?.function
  return [
    { problem: 'unknown-tool', reply: replyOf('', { tool: 'no_such_tool' }) },
    { problem: 'malformed-call', reply: replyOf('', { malformed: '<call>{"na' }) },
    ...(strict
      ? [{ problem: 'invalid-arguments', reply: replyOf('', { tool: strict.name, input: {} }) }]
      : []),
  ]
}

/** A value that may fit a JSON schema; nothing is promised, tools refuse what does not. */
function makeUp(value: unknown, draw: Random, depth = 0): unknown {
  const schema: JsonSchema = isRecord(value) ? value : {}
  const { type, properties, items } = schema
  const choices = schema.enum ?? schema.anyOf ?? schema.oneOf
  if ('const' in schema) return schema.const
  if ('default' in schema) return schema.default
  if (Array.isArray(choices)) {
    const choice: unknown = choices[Math.floor(draw() * choices.length)]
    return schema.enum ? choice : makeUp(choice, draw, depth + 1)
  }
  if (type === 'boolean') return draw() < 0.5
  if (type === 'integer' || type === 'number') return Math.floor(draw() * 10)
  if (type === 'array') return depth > 3 ? [] : [makeUp(items, draw, depth + 1)]
  if (type !== 'object' && !properties) return ['a', 'b', '1', ''][Math.floor(draw() * 4)]
  if (depth > 3 || !isRecord(properties)) return {}
  return Object.fromEntries(
    Object.entries(properties).map(([key, property]) => [key, makeUp(property, draw, depth + 1)]),
  )
}
