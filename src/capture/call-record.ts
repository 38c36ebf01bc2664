import type { Message, ToolCall, ToolDefinition } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import type { CallRecord, ToolProblem } from '../core/tool.ts'
import { validatorOf } from '../environments/tools/json-schema.ts'

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
  return checked(tool)(input).length > 0 ? 'invalid-arguments' : undefined
}

const validators = new WeakMap<ToolDefinition, ReturnType<typeof validatorOf>>()

/** A schema that cannot be compiled finds nothing wrong: the agent's own tools decide. */
function checked(tool: ToolDefinition): ReturnType<typeof validatorOf> {
  const known = validators.get(tool)
  if (known) return known
  const made = compile(tool)
  validators.set(tool, made)
  return made
}

function compile({ function: { parameters } }: ToolDefinition): ReturnType<typeof validatorOf> {
  // Patterns of strangers can take forever on texts of a model.
  if (/"pattern(Properties)?":/.test(JSON.stringify(parameters))) return () => []
  try {
    return validatorOf(parameters)
  } catch {
    return () => []
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
