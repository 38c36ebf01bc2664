import type { IdBuffer } from './buffers.ts'
import type { Vocabulary } from './vocabulary.ts'

const utf8 = new TextEncoder()

/** The tokens `<0x00>` to `<0xFF>` by byte; undefined if the vocabulary lacks one. */
export function byteTokens(vocabulary: Vocabulary): readonly (number | undefined)[] {
  return Array.from({ length: 256 }, (_, byte) => vocabulary.idOf(byteToken(byte)))
}

/** How a vocabulary writes a byte: `<0x0A>`. */
export function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`
}

/** Adds the bytes of a text as tokens; false, and nothing is added, if one of them has none. */
export type ByteWriter = (text: string, ids: IdBuffer) => boolean

/** Writes what a vocabulary does not know as bytes, if its model does that. */
export function byteWriter(vocabulary: Vocabulary, isWanted: boolean): ByteWriter {
  if (!isWanted) return () => false
  const tokens = byteTokens(vocabulary)
  return (text, ids) => {
    const bytes = utf8.encode(text)
    if (bytes.some(byte => tokens[byte] === undefined)) return false
    for (const byte of bytes) ids.push(tokens[byte]!)
    return true
  }
}

/** A text that cannot be encoded. */
export function noToken(text: string): Error {
  return new Error(
    `The vocabulary has no token for ${JSON.stringify(text)}, and no unk_token to take instead`,
  )
}
