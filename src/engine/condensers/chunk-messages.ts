import type { Content, ContentPart, Message } from '@espalier/text'
import { type ChunkOptions, chunkText } from './chunk.ts'

/** A piece of a message's text, with where it stands. */
export interface Chunk {
  /** The message's number. */
  readonly message: number
  /** The number of its part, if its content is a list of parts. */
  readonly part?: number
  readonly text: string
}

/**
 * Cuts the texts of messages into chunks, in order. Images, calls, reasoning and ids are not
 * chunks: they stay in their message. Every text is in some chunk, so that nothing is lost.
 */
export function chunkMessages(
  messages: readonly Message[],
  options: ChunkOptions = {},
): readonly Chunk[] {
  return messages.flatMap(({ content }, message) =>
    textsOf(content).flatMap(({ text, part }) =>
      chunkText(text, options).map(piece => ({
        message,
        ...(part !== undefined && { part }),
        text: piece,
      })),
    ),
  )
}

function textsOf(content: Content | null): readonly { text: string; part?: number }[] {
  if (content === null) return []
  if (typeof content === 'string') return [{ text: content }]
  return content.flatMap((each, part) => (each.type === 'text' ? [{ text: each.text, part }] : []))
}

/** The messages with chunks replaced; a message none of whose chunks changed is the same object. */
export function withChunks(
  messages: readonly Message[],
  chunks: readonly Chunk[],
  replace: (chunk: Chunk) => string,
): readonly Message[] {
  const texts = new Map<string, string[]>()
  const changed = new Set<number>()
  for (const chunk of chunks) {
    const text = replace(chunk)
    if (text !== chunk.text) changed.add(chunk.message)
    const key = keyOf(chunk.message, chunk.part)
    const pieces = texts.get(key)
    if (pieces) pieces.push(text)
    else texts.set(key, [text])
  }
  const textAt = (message: number, part?: number): string =>
    (texts.get(keyOf(message, part)) ?? []).join('')
  return messages.map((message, index) =>
    changed.has(index) ? withContent(message, part => textAt(index, part)) : message,
  )
}

function keyOf(message: number, part: number | undefined): string {
  return `${message}:${part ?? ''}`
}

function withContent(message: Message, textAt: (part?: number) => string): Message {
  const { content } = message
  if (content === null) return message
  if (typeof content === 'string') return { ...message, content: textAt() }
  const parts = content.map(
    (part, index): ContentPart => (part.type === 'text' ? { ...part, text: textAt(index) } : part),
  )
  return { ...message, content: parts }
}
