import type { AssistantMessage, Message } from '../../message.ts'
import type { Chat } from '../chat.ts'
import { argumentMark, asked, callingTurn, probeTool, spokenTurn, thoughtMark } from './probe.ts'

/** The shape in which a template expects the OpenAI schema's fields; published templates disagree. */
export interface Dialect {
  /** The arguments of a call: a dict, or the JSON text itself. */
  readonly arguments: 'dict' | 'text'
  /** The content of a turn that only calls: an empty string, or `None`. */
  readonly emptyContent: 'text' | 'none'
  /** The field that holds the reasoning. */
  readonly reasoning: 'reasoning_content' | 'thinking'
  /** The thoughts of a turn that speaks and calls: beside its words, or before them in one text. */
  readonly thoughts: 'beside' | 'joined'
  /** Content in parts: as the list it is, or as one text. */
  readonly parts: 'list' | 'text'
}

/** What transformers' documentation tells authors of templates to expect. */
export const plainDialect: Dialect = {
  arguments: 'dict',
  emptyContent: 'text',
  reasoning: 'reasoning_content',
  thoughts: 'beside',
  parts: 'list',
}

/** Finds the shape in which a template shows calls, reasoning and parts, by trying. */
export function findDialect(open: (dialect: Dialect) => Chat): Dialect {
  const calls = findCalls(open)
  const reasoning = (['reasoning_content', 'thinking'] as const).find(field =>
    showsThought(open({ ...plainDialect, ...calls, reasoning: field })),
  )
  const chosen = { ...plainDialect, ...calls, ...(reasoning && { reasoning }) }
  const chat = open(chosen)
  return {
    ...chosen,
    thoughts: takesThoughts(chat) ? 'beside' : 'joined',
    parts: takesParts(chat) ? 'list' : 'text',
  }
}

/**
 * Of the shapes in which a call is shown, the one with the shortest text: a template that expects
 * `None` opens a second turn for an empty string, one that expects a string writes the word None.
 */
function findCalls(open: (dialect: Dialect) => Chat): Partial<Dialect> {
  for (const given of ['dict', 'text'] as const) {
    const shown = (['text', 'none'] as const)
      .map(emptyContent => ({ ...plainDialect, arguments: given, emptyContent }))
      .map(dialect => ({ dialect, text: tryText(open(dialect), [asked, callingTurn([{}])]) }))
      .filter(({ text }) => text?.includes(argumentMark))
      .sort((a, b) => a.text!.length - b.text!.length)
    if (shown[0]) return shown[0].dialect
  }
  return {}
}

function showsThought(chat: Chat): boolean {
  return [spokenTurn, callingTurn([{}])].some(turn =>
    tryText(chat, [asked, turn as AssistantMessage])?.includes(thoughtMark),
  )
}

/** Whether a turn may think, speak and call at once; gpt-oss takes either thoughts or words. */
function takesThoughts(chat: Chat): boolean {
  const turn = callingTurn([{}])
  if (tryText(chat, [asked, turn]) === undefined) return true
  return tryText(chat, [asked, { ...turn, content: asked.content }]) !== undefined
}

function takesParts(chat: Chat): boolean {
  const inParts: Message = { role: 'user', content: [{ type: 'text', text: asked.content }] }
  const whole = tryText(chat, [asked])
  return whole !== undefined && tryText(chat, [inParts]) === whole
}

/** A rendering with the probing tool, or without it if the template refuses that. */
function tryText(chat: Chat, messages: readonly Message[]): string | undefined {
  for (const tools of [[probeTool], []]) {
    try {
      return chat.render({ messages, tools, opensTurn: false }).text
    } catch {
      // A template may refuse what it is shown; another shape is tried.
    }
  }
  return undefined
}
