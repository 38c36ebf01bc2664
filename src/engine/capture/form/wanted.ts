import type { Message, Renderer, ToolDefinition } from '@espalier/text'
import type { Form, FormText, JsonSchema } from '../../../base/core/policy.ts'
import type { CaptureContext, ChatRequest } from '../contract.ts'

/** The form that an answer has to have, if the policy can be held to it: one JSON value, or a call of a tool that has to be made. */
export function formFor(
  { responseFormat, toolChoice = 'auto' }: ChatRequest,
  { policy, renderer }: Pick<CaptureContext, 'policy' | 'renderer'>,
  tools: readonly ToolDefinition[],
): Form | undefined {
  const { forms } = policy.capabilities
  if (!forms) return undefined
  const isForced = toolChoice !== 'auto' && toolChoice !== 'none'
  if (isForced && tools.length > 0) return callForm(renderer, tools, forms)
  // An answer that may be a call need not have the form.
  if (responseFormat?.kind !== 'json' || tools.length > 0) return undefined
  const schema: JsonSchema = responseFormat.schema ?? { type: 'object' }
  return { oneOf: [{ before: '', schema, after: '' }] }
}

function callForm(
  renderer: Renderer,
  tools: readonly ToolDefinition[],
  forms: 'json' | 'any',
): Form | undefined {
  const texts = tools.map(tool => callText(renderer, tool, tools))
  const [first, ...others] = texts.filter(text => text !== undefined)
  if (!first || others.length < tools.length - 1) return undefined
  const isKnown = forms === 'any' || first.writes === undefined
  return isKnown ? { oneOf: [first, ...others] } : undefined
}

const probe = { probe: 'of arguments' }
const written = /(\{\s*"probe":\s*"of arguments"\s*\})|\bprobe="of arguments"/

/** How the template writes a call of a tool, around its arguments; undefined if it writes them neither as one JSON object nor as Python does. */
function callText(
  renderer: Renderer,
  { function: { name, parameters } }: ToolDefinition,
  tools: readonly ToolDefinition[],
): FormText | undefined {
  const asked: Message = { role: 'user', content: 'Go.' }
  const said: Message = {
    role: 'assistant',
    content: '',
    tool_calls: [
      { id: 'call_0', type: 'function', function: { name, arguments: JSON.stringify(probe) } },
    ],
  }
  const next: Message = { role: 'tool', content: 'Done.', tool_call_id: 'call_0', name }
  try {
    const opened = renderer.decode(renderer.render([asked], tools))
    const all = renderer.decode(renderer.render([asked, said, next], tools))
    if (!all.startsWith(opened)) return undefined
    const turn = all.slice(opened.length)
    const found = written.exec(turn)
    if (!found) return undefined
    const stops = renderer.stopIds.map(id => renderer.decode(Int32Array.of(id)))
    const rest = turn.slice(found.index + found[0].length)
    const ends = stops.map(stop => rest.indexOf(stop)).filter(at => at >= 0)
    if (ends.length === 0) return undefined
    const schema = (parameters ?? { type: 'object' }) as JsonSchema
    const around = { before: turn.slice(0, found.index), after: rest.slice(0, Math.min(...ends)) }
    return { ...around, schema, ...(found[1] === undefined && { writes: 'keywords' }) }
  } catch {
    return undefined
  }
}
