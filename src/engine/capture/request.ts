import type { Message, Renderer, ToolDefinition } from '@espalier/text'
import type { Policy, Sampling } from '../../base/core/policy.ts'
import type { CaptureContext, ChatRequest, ResponseFormat } from './contract.ts'
import { RequestProblem } from './dialects/problem.ts'
import type { Shown } from './known.ts'
import { toolsKey } from './message-key.ts'

/** What a request shows the policy. */
export function shownBy(request: ChatRequest, context: CaptureContext): Shown {
  const { shared, policy, renderer } = context
  refuseCandidates(request, policy)
  const tools = shared.tools.same(offeredTools(request))
  return { messages: shownMessages(request, renderer), tools, toolsKey: toolsKey(tools) }
}

function refuseCandidates({ topLogprobs = 0 }: ChatRequest, { capabilities }: Policy): void {
  const { topLogprobs: most } = capabilities
  if (topLogprobs <= most) return
  const gives = most === 0 ? 'no other candidates' : `at most ${most} candidates`
  const message = `${topLogprobs} top log-probabilities are asked for, and this policy gives ${gives} per token`
  throw new RequestProblem('unsupported', message)
}

/** The tools a request offers, as far as its choice leaves them. */
function offeredTools({ tools, toolChoice = 'auto' }: ChatRequest): readonly ToolDefinition[] {
  if (toolChoice === 'none') return []
  if (typeof toolChoice === 'string') return tools
  return tools.filter(tool => tool.function.name === toolChoice.tool)
}

/** The messages a request shows; a form that its answer should have is asked for in words. */
function shownMessages(
  { messages: given, responseFormat }: ChatRequest,
  renderer: Renderer,
): readonly Message[] {
  const messages = heeded(given, renderer)
  const instruction = responseFormat && formatInstruction(responseFormat)
  if (instruction === undefined) return messages
  const [first, ...rest] = messages
  const isSystem = first?.role === 'system' || first?.role === 'developer'
  if (!isSystem || typeof first.content !== 'string') {
    return [{ role: 'system', content: instruction }, ...messages]
  }
  return [{ ...first, content: `${first.content}\n\n${instruction}` }, ...rest]
}

/** If a template leaves out what a developer says, as most do, it is said by the system. */
function heeded(messages: readonly Message[], renderer: Renderer): readonly Message[] {
  if (!messages.some(({ role }) => role === 'developer') || writesDeveloper(renderer)) {
    return messages
  }
  return messages.map(message =>
    message.role === 'developer' ? { ...message, role: 'system' } : message,
  )
}

const developers = new WeakMap<Renderer, boolean>()

function writesDeveloper(renderer: Renderer): boolean {
  const known = developers.get(renderer)
  if (known !== undefined) return known
  const writes = tryDeveloper(renderer)
  developers.set(renderer, writes)
  return writes
}

function tryDeveloper(renderer: Renderer): boolean {
  const content = 'Heed this.'
  const question = { role: 'user', content: 'Go.' } as const
  try {
    const ids = renderer.render([{ role: 'developer', content }, question], [])
    return renderer.decode(ids).includes(content)
  } catch {
    return false
  }
}

function formatInstruction(format: ResponseFormat): string | undefined {
  if (format.kind === 'text') return undefined
  if (!format.schema) return 'Answer with one JSON object and nothing else.'
  return `Answer with one JSON value that fits this JSON schema, and nothing else:\n${JSON.stringify(format.schema)}`
}

/** The request's own sampling settings, for runs where requests decide. */
export function requestSampling(
  { temperature, topP, topK }: ChatRequest,
  sampling: Sampling,
): Sampling {
  return {
    ...sampling,
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
  }
}

/** The names of the sampling settings in a request that differ from the run's. */
export function otherSampling(
  request: ChatRequest,
  sampling: Sampling,
): readonly ('temperature' | 'topP' | 'topK')[] {
  return (['temperature', 'topP', 'topK'] as const).filter(
    name => request[name] !== undefined && request[name] !== sampling[name],
  )
}
