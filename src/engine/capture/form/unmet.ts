import { type AssistantMessage, textOf } from '@espalier/text'
import type { ChatRequest, Unmet } from '../contract.ts'
import { checkBy } from './schema-check.ts'

/** What a request asked for in words and its answer lacks, each with what is wrong. */
export function unmetBy(request: ChatRequest, message: AssistantMessage): readonly Unmet[] {
  const { responseFormat, toolChoice } = request
  if (responseFormat === undefined && toolChoice === undefined) return []
  const format = formatProblem(request, message)
  const choice = choiceProblem(request, message)
  return [
    ...(format === undefined ? [] : [{ what: 'response-format', problem: format } as const]),
    ...(choice === undefined ? [] : [{ what: 'tool-choice', problem: choice } as const]),
  ]
}

/** An answer with calls is not final, so it need not have the form. */
function formatProblem(
  { responseFormat }: ChatRequest,
  { content, tool_calls: calls = [] }: AssistantMessage,
): string | undefined {
  if (responseFormat?.kind !== 'json' || calls.length > 0) return undefined
  const value = readJson(textOf(content))
  if (value === undefined) return 'the answer is not JSON'
  const { schema } = responseFormat
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!schema) return isObject ? undefined : 'the answer is not a JSON object'
  const [problem] = checkBy(schema, value)
  return problem === undefined ? undefined : `the answer does not fit its schema: ${problem}`
}

function choiceProblem(
  { toolChoice }: ChatRequest,
  { tool_calls: calls = [] }: AssistantMessage,
): string | undefined {
  if (toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none') return undefined
  if (toolChoice === 'required') return calls.length > 0 ? undefined : 'no tool was called'
  const isCalled = calls.some(({ function: { name } }) => name === toolChoice.tool)
  return isCalled ? undefined : `"${toolChoice.tool}" was not called`
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
