import type { Text } from '../value.ts'

/** The characters of a text. */
export const plain = (text: Text): string => (typeof text === 'string' ? text : text.text)

/** How many UTF-16 units a text has; of a hidden one, how many it can have at most. */
export const sizeOf = (text: Text): number => (typeof text === 'string' ? text.length : text.size)

/** Asks something about a text, which a hidden one answers as well. */
export const askText = (text: Text, question: (text: string) => boolean): boolean =>
  typeof text === 'string' ? question(text) : text.ask(question)

/** A part of a text, by UTF-16 offsets. */
export const sliceText = (text: Text, start: number, end: number): Text => text.slice(start, end)

/** The text with its characters changed. */
export const mapText = (text: Text, change: (text: string) => string): Text =>
  typeof text === 'string' ? change(text) : text.map(change)

/** A text whose characters are not known yet with a change applied later, else `undefined`. */
export const changeLater = (
  text: Text,
  change: (text: string) => string,
  growth = 1,
): Text | undefined => (typeof text === 'string' ? undefined : text.later(change, growth))

/** Texts one after the other, as a plain `str`. */
export function joinTexts(parts: readonly Text[]): Text {
  let joined = ''
  for (const part of parts) {
    if (typeof part !== 'string') return part.join(parts)
    joined += part
  }
  return joined
}

/** A text as it may be put into `text`: Markup escapes what it takes in. */
export const admit = (text: Text, other: Text): Text =>
  typeof text === 'string' ? other : text.admit(other)

/** A text made of `text`, of the same class: Markup stays Markup. */
export const likeText = (text: Text, made: Text): Text =>
  typeof text === 'string' ? made : text.like(made)

const SURROGATE = /[\ud800-\udfff]/

/** Whether all characters are one UTF-16 unit, so that offsets count characters. */
export const isNarrow = (text: string): boolean => !SURROGATE.test(text)

/** The number of code points. */
export function countCharacters(text: string): number {
  if (isNarrow(text)) return text.length
  let count = 0
  for (const _ of text) count++
  return count
}

/** The UTF-16 offsets at which characters begin, with the length at the end. */
export function characterOffsets(text: string): number[] {
  const offsets: number[] = []
  let offset = 0
  for (const character of text) {
    offsets.push(offset)
    offset += character.length
  }
  offsets.push(offset)
  return offsets
}
