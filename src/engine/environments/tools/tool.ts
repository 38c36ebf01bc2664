import type { Tool, ToolLimits } from '../../../base/core/tool.ts'

/**
 * A tool as worlds accept it: what `tool()` makes and, by structure, what the AI SDK's `tool()`
 * makes. Its input is validated by `inputSchema` before `execute` sees it.
 */
export interface OfferedTool {
  readonly description?: string | undefined
  readonly inputSchema: unknown
  readonly execute?: ((input: never, execution: never) => unknown) | undefined
  readonly limits?: ToolLimits | undefined
  readonly effects?: 'none' | 'outside' | undefined
}

/** The tools of a world, by the names the policy calls them. */
export type Toolset = Readonly<Record<string, OfferedTool>>

/** Gives the tool back as it is, with the type of its input inferred from `inputSchema`. */
export function tool<Schema, Output>(definition: Tool<Schema, Output>): Tool<Schema, Output> {
  return definition
}
