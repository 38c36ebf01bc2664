import type { Environment } from '../../../base/core/environment.ts'
import { environment, type Nudge } from '../environment.ts'
import type { WorldCall } from '../opened-world.ts'
import type { Toolset } from '../tools/tool.ts'
import { openingOf, type PromptTask, promptTask } from './prompt-task.ts'
import { type Match, matches } from './single-turn.ts'

/** What a tool loop offers and how it scores. */
export interface ToolLoopOptions {
  /** @default 'tool-loop' */
  readonly name?: string
  /** The tools, or what opens them for each world, such as a connection to an MCP server. */
  readonly tools: Toolset | ((call: WorldCall) => Toolset | Promise<Toolset>)
  /** @default 'exact' */
  readonly match?: Match
  readonly calls?: 'one' | 'many'
  readonly nudge?: Nudge
}

/** Asks what the task asks, runs the tools the policy calls, and takes its first plain turn as the answer. */
export function toolLoop(options: ToolLoopOptions): Environment<PromptTask> {
  const { tools, match, ...rest } = { name: 'tool-loop', match: 'exact' as const, ...options }
  return environment({
    ...rest,
    task: promptTask,
    open: async ({ data, signal, defer }) => ({
      opening: openingOf(data),
      tools: typeof tools === 'function' ? await tools({ signal, defer }) : tools,
    }),
    reward: { right: ({ task, answer }) => Number(matches[match](answer, task.data)) },
  })
}
