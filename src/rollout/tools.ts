import type { ToolDefinition } from '../core/message.ts'
import type { RolloutContext } from './attempt.ts'

const listsKept = 256
const lists = new WeakMap<RolloutContext, Map<string, readonly ToolDefinition[]>>()

/**
 * The same list for tools that read the same. Every world brings a list of its own; what is made
 * from one, template values and parsers, is then made once and not for every attempt.
 */
export function sameTools(
  context: RolloutContext,
  tools: readonly ToolDefinition[],
): readonly ToolDefinition[] {
  const known = lists.get(context) ?? new Map<string, readonly ToolDefinition[]>()
  lists.set(context, known)
  const key = JSON.stringify(tools)
  const found = known.get(key)
  if (found) return found
  if (known.size >= listsKept) known.clear()
  known.set(key, tools)
  return tools
}
