import { type AssistantMessage, type Reply, textOf } from '../message.ts'
import type { Conversation } from './random-conversation.ts'
import type { ModelRenderer } from './renderer.ts'

/** Whether parsing a rendered turn gives its message back, and rendering that gives the same text. */
export type ReadingFinding =
  | { readonly kind: 'read' }
  /** The template does not show this turn as a policy would sample it. */
  | { readonly kind: 'unshown' }
  | { readonly kind: 'misread'; readonly problem: string }

/** Parses every turn of a conversation as its template writes it, and compares with the message. */
export function readBack(
  renderer: ModelRenderer,
  { opening, tools, turns }: Conversation,
): readonly ReadingFinding[] {
  return turns.map(({ message }, index): ReadingFinding => {
    const text = turnText(renderer, { opening, tools, turns: [] }, message)
    const shown = text === undefined ? undefined : shownPart(renderer, message, text)
    if (text === undefined || shown === undefined) return { kind: 'unshown' }
    const reply = renderer.parse(renderer.tokenizer.encode(text), tools, index)
    const again = turnText(renderer, { opening, tools, turns: [] }, reply.message)
    const problem =
      compareReply(shown, reply) ??
      (again === text
        ? undefined
        : `${quote(text)} would be written again as ${quote(again ?? '')}`)
    return problem === undefined ? { kind: 'read' } : { kind: 'misread', problem }
  })
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

/** A turn as the template writes it after an opening; undefined if the rendering does not continue the opening. */
function turnText(
  { chat, profile }: ModelRenderer,
  { opening, tools }: Conversation,
  message: AssistantMessage,
): string | undefined {
  const prompt = chat.render({ messages: opening, tools, opensTurn: true }).text
  const { text } = chat.render({ messages: [...opening, message], tools, opensTurn: false })
  if (!text.startsWith(prompt)) return undefined
  const several = (message.tool_calls ?? []).length > 1 ? profile.called?.several : profile.called
  const { sampledStop: stop } = (message.tool_calls ? several : undefined) ?? profile.spoken
  const at = stop === '' ? -1 : text.lastIndexOf(stop)
  return at < prompt.length
    ? text.slice(prompt.length)
    : text.slice(prompt.length, at + stop.length)
}

/** What of a message its template shows at all: some leave out words beside calls, or calls. */
function shownPart(
  { profile }: ModelRenderer,
  message: AssistantMessage,
  text: string,
): AssistantMessage | undefined {
  const { tool_calls: calls = [], reasoning_content: thought, content, ...rest } = message
  if (calls.length > 0 && profile.called?.mark === 'content') return undefined
  const shown = profile.called?.mark === 'first' ? calls.slice(0, 1) : calls
  return {
    ...rest,
    content: text.includes(textOf(content).trim()) ? content : '',
    ...(thought !== undefined && text.includes(thought.trim()) && { reasoning_content: thought }),
    ...(shown.length > 0 && { tool_calls: shown }),
  }
}

function compareReply(
  message: AssistantMessage,
  { message: read, calls }: Reply,
): string | undefined {
  const bad = calls.find(call => call.kind === 'malformed')
  if (bad?.kind === 'malformed') return `a call was taken for malformed: ${bad.problem}`
  const wanted = (message.tool_calls ?? []).map(({ function: call }) => call)
  const found = (read.tool_calls ?? []).map(({ function: call }) => call)
  if (found.length !== wanted.length) return `${found.length} calls were read of ${wanted.length}`
  for (const [index, call] of wanted.entries()) {
    const other = found[index]!
    const [was, is] = [call, other].map(each => JSON.stringify(JSON.parse(each.arguments)))
    if (other.name !== call.name || was !== is) {
      return `the call ${call.name}${was} was read as ${other.name}${is}`
    }
  }
  const [said, words] = [message, read].map(each => textOf(each.content).trim())
  if (said !== words) return `${JSON.stringify(said)} was read as ${JSON.stringify(words)}`
  const [thought, thoughts] = [message, read].map(each => each.reasoning_content?.trim() ?? '')
  if (thoughts !== thought) {
    return `the thought ${JSON.stringify(thought)} was read as ${JSON.stringify(thoughts)}`
  }
  return undefined
}
