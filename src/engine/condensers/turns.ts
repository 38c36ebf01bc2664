import { type Message, textOf } from '@espalier/text'
import type { CondenseCall } from '../../base/core/condenser.ts'

/** A conversation as condensers see it: what it opened with, then turns that each begin with a reply. */
export interface Turns {
  readonly opening: readonly Message[]
  readonly turns: readonly (readonly Message[])[]
  /** The note that replaced turns that are gone already. */
  readonly note?: string
}

/** Finds the turns of a conversation, and the note on those that are gone. */
export function turnsOf(
  messages: readonly Message[],
  { opening }: Pick<CondenseCall, 'opening'>,
): Turns {
  const turns: Message[][] = []
  const between: Message[] = []
  for (const message of messages.slice(opening)) {
    if (message.role === 'assistant') turns.push([message])
    else (turns.at(-1) ?? between).push(message)
  }
  const [last] = between
  const before = messages.slice(0, opening)
  if (last) return { opening: before, turns, note: stripMarks(`\n\n${textOf(last.content)}`) }
  return { ...withoutNote(before), turns }
}

const [open, close] = ['\n\n<earlier>\n', '\n</earlier>']

/** A conversation whose opening ends with a note on what is not shown any more. */
export function toMessages(
  { opening, turns }: Pick<Turns, 'opening' | 'turns'>,
  note?: string,
): readonly Message[] {
  if (note === undefined) return [...opening, ...turns.flat()]
  // The note's text must not be able to close its own mark.
  const inside = note.replace(/<(\/?)earlier>/g, '<$1 earlier>')
  return [...withNote(opening, `${open}${inside}${close}`), ...turns.flat()]
}

/** Two messages of one role in a row confuse many templates, so the note joins the last message. */
function withNote(opening: readonly Message[], note: string): readonly Message[] {
  const last = opening.at(-1)
  if (last === undefined || last.role === 'assistant' || last.role === 'tool') {
    return [...opening, { role: 'user', content: note.trim() }]
  }
  const { content } = last
  const joined =
    typeof content === 'string'
      ? content + note
      : [...content, { type: 'text', text: note } as const]
  return [...opening.slice(0, -1), { ...last, content: joined }]
}

function withoutNote(opening: readonly Message[]): Pick<Turns, 'opening' | 'note'> {
  const last = opening.at(-1)
  if (last === undefined || last.role === 'assistant' || last.role === 'tool') return { opening }
  const { content } = last
  const end = typeof content === 'string' ? content : content.at(-1)
  const text = typeof end === 'string' ? end : end?.type === 'text' ? end.text : ''
  const start = text.endsWith(close) ? text.lastIndexOf(open) : -1
  if (start < 0) return { opening }
  const rest = typeof content === 'string' ? text.slice(0, start) : content.slice(0, -1)
  return {
    opening: [...opening.slice(0, -1), { ...last, content: rest }],
    note: stripMarks(text.slice(start)),
  }
}

function stripMarks(note: string): string {
  return note.slice(open.length, -close.length)
}

/** How the oldest turns are left out. */
export interface LeaveOutOptions {
  /** Most turns to keep, even if more would fit. @default Infinity */
  readonly most?: number
  /** What stands instead of the first `count` turns of all that were sampled. */
  readonly note: (count: number) => string
}

/** What is left when the oldest turns are gone. */
export interface LeftOut {
  readonly messages: readonly Message[]
  /** How many of all turns that were sampled are not shown any more. */
  readonly count: number
  readonly kept: readonly (readonly Message[])[]
}

/** Keeps as many of the last turns as fit into the tokens, and the very last one in any case. */
export function leaveOutOldest(all: Turns, call: CondenseCall, options: LeaveOutOptions): LeftOut {
  const { opening, turns } = all
  const keeping = (kept: number): LeftOut => {
    const rest = kept === 0 ? [] : turns.slice(-kept)
    const count = call.turn - rest.length
    const note = count > 0 ? options.note(count) : undefined
    return { messages: toMessages({ opening, turns: rest }, note), count, kept: rest }
  }
  let low = Math.min(1, turns.length)
  let high = Math.max(low, Math.min(turns.length, options.most ?? turns.length))
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (call.count(keeping(middle).messages) <= call.tokens) low = middle
    else high = middle - 1
  }
  return keeping(low)
}

/** Turns in words: `turn 1`, `turns 1 to 7`. */
export function describeTurns(count: number): string {
  return count === 1 ? 'turn 1' : `turns 1 to ${count}`
}

/** What stands in the place of turns that are gone. */
export function goneNote(count: number): string {
  return `Left out here because the conversation is long: ${describeTurns(count)}.`
}
