import type { ToolDefinition } from '@espalier/text'

const listsKept = 256

/** The tool lists of a run's worlds, each kept once. */
export interface ToolLists {
  /**
   * Returns one shared list for equal tools. Every world brings its own list; with a shared one, the
   * template values and parsers made from it are made once and not for every attempt.
   */
  same(tools: readonly ToolDefinition[]): readonly ToolDefinition[]
}

/** Opens the tool lists of a run. */
export function makeToolLists(): ToolLists {
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

/** Whether the lists hold the same objects, so that nothing has to be compared. */
function isSame(one: readonly ToolDefinition[], other: readonly ToolDefinition[]): boolean {
  return one.length === other.length && one.every((tool, index) => tool === other[index])
}
