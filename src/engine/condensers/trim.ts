import type { Message, ToolMessage } from '@espalier/text'
import type { CondenseCall } from '../../base/core/condenser.ts'
import { leftOutImage } from '../../base/core/image.ts'
import { codePoints } from './chunk.ts'
import { chunkMessages, withChunks } from './chunk-messages.ts'

/** Messages whose tool outputs have at most so many code points, their beginning and end kept. */
export function trimTools(
  messages: readonly Message[],
  characters: number,
  isTrimmed: (index: number) => boolean = () => true,
): readonly Message[] {
  const texts = chunkMessages(messages, { size: Number.POSITIVE_INFINITY })
  const cut = withChunks(messages, texts, ({ message, text }) =>
    messages[message]!.role === 'tool' && isTrimmed(message) ? trimText(text, characters) : text,
  )
  return cut.map((message, index) =>
    message.role === 'tool' && isTrimmed(index) ? withoutImages(message) : message,
  )
}

/** Images cannot be trimmed: they are left out whole. */
function withoutImages(message: ToolMessage): ToolMessage {
  const { content } = message
  if (typeof content === 'string' || content.every(({ type }) => type === 'text')) return message
  return { ...message, content: content.map(part => (part.type === 'text' ? part : leftOutImage)) }
}

/** The fewest code points a text is trimmed to. */
export const leastTrimmed = 32

const mark = /^([\s\S]*)\n\[(\d+) characters left out\]\n([\s\S]*)$/

/** A text's beginning and end, with how much is missing between them; never longer than the text. */
export function trimText(text: string, characters: number): string {
  const length = codePoints(text)
  if (length <= characters) return text
  const before = mark.exec(text)
  const missing = before ? Number(before[2]) : 0
  const [head, tail] = before ? [before[1]!, before[3]!] : [text, text]
  const side = Math.floor(characters / 2)
  const first = [...head.slice(0, 2 * side)].slice(0, side).join('')
  const last = side === 0 ? '' : [...tail.slice(-2 * side)].slice(-side).join('')
  const cut =
    length -
    codePoints(first) -
    codePoints(last) +
    missing -
    (before ? codePoints(markOf(missing)) : 0)
  const trimmed = `${first}${markOf(cut)}${last}`
  return codePoints(trimmed) < length ? trimmed : text
}

function markOf(count: number): string {
  return `\n[${count} characters left out]\n`
}

/** Trims tool outputs, the longest first, until the conversation fits; as far as that goes. */
export function trimToFit(
  messages: readonly Message[],
  call: Pick<CondenseCall, 'count' | 'tokens'>,
  isTrimmed?: (index: number) => boolean,
): readonly Message[] {
  let trimmed = messages
  for (let characters = 4096; characters >= leastTrimmed; characters /= 2) {
    if (call.count(trimmed) <= call.tokens) return trimmed
    trimmed = trimTools(trimmed, characters, isTrimmed)
  }
  return trimmed
}
