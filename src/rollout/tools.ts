import type { ToolDefinition } from '../core/message.ts'
import type { RolloutContext } from './attempt.ts'

const listsKept = 256

interface Lists {
  readonly byText: Map<string, readonly ToolDefinition[]>
  /** The list that was asked for last. */
  last: readonly ToolDefinition[]
}

const lists = new WeakMap<RolloutContext, Lists>()

/**
 * The same list for tools that read the same. Every world brings a list of its own; what is made
 * from one, template values and parsers, is then made once and not for every attempt.
 */
export function sameTools(
  context: RolloutContext,
  tools: readonly ToolDefinition[],
): readonly ToolDefinition[] {
  const known = lists.get(context) ?? { byText: new Map(), last: [] }
  lists.set(context, known)
  if (isSame(tools, known.last)) return known.last
  const { byText } = known
  const key = JSON.stringify(tools)
  if (byText.size >= listsKept && !byText.has(key)) byText.clear()
  known.last = byText.get(key) ?? tools
  byText.set(key, known.last)
  return known.last
}

/** Whether worlds share their tools, so that nothing has to be compared. */
function isSame(one: readonly ToolDefinition[], other: readonly ToolDefinition[]): boolean {
  return one.length === other.length && one.every((tool, index) => tool === other[index])
}
