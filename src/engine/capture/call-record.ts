import type { Message, ToolCall, ToolDefinition } from '@espalier/text'
import { textOf } from '@espalier/text'
import type { CallRecord, ToolProblem } from '../../base/core/tool.ts'
import { checkBy } from './form/schema-check.ts'

/** What a call is recorded with. */
export interface CallPlace {
  readonly turn: number
  readonly tools: readonly ToolDefinition[]
  /** What was said behind it. */
  readonly observed: readonly Message[]
}

/** A call that an agent ran in its own way, as far as it can be seen from outside. */
export function recordCall(
  { id, function: { name, arguments: text } }: ToolCall,
  { turn, tools, observed }: CallPlace,
): CallRecord {
  const result = observed.find(message => message.role === 'tool' && message.tool_call_id === id)
  const input = readJson(text)
  const problem = problemOf(name, input, tools)
  return {
    turn,
    id,
    tool: name,
    input,
    output: result ? textOf(result.content) : '',
    ...(problem && { problem }),
    seconds: 0,
  }
}

function problemOf(
  name: string,
  input: unknown,
  tools: readonly ToolDefinition[],
): ToolProblem | undefined {
  const tool = tools.find(({ function: offered }) => offered.name === name)
  if (!tool) return 'unknown-tool'
  const problems = checkBy(tool.function.parameters, input)
  return problems.length > 0 ? 'invalid-arguments' : undefined
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
