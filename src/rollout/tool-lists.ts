import type { ToolDefinition } from '../core/message.ts'

const listsKept = 256

/** The tool lists of a run's worlds, each kept once. */
export interface ToolLists {
  /**
   * The same list for tools that read the same. Every world brings a list of its own; what is made
   * from one, template values and parsers, is then made once and not for every attempt.
   */
  same(tools: readonly ToolDefinition[]): readonly ToolDefinition[]
}

/** Opens the tool lists of a run. */
export function openToolLists(): ToolLists {
  const byText = new Map<string, readonly ToolDefinition[]>()
  let last: readonly ToolDefinition[] = []
  return {
    same(tools) {
      if (isSame(tools, last)) return last
      const key = JSON.stringify(tools)
      if (byText.size >= listsKept && !byText.has(key)) byText.clear()
      last = byText.get(key) ?? tools
      byText.set(key, last)
      return last
    },
  }
}

/** Whether worlds share their tools, so that nothing has to be compared. */
function isSame(one: readonly ToolDefinition[], other: readonly ToolDefinition[]): boolean {
  return one.length === other.length && one.every((tool, index) => tool === other[index])
}
