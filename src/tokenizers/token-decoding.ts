import { type Decoder, isByteToken } from './decoders.ts'
import type { Decoding } from './decoding.ts'
import type { StreamDecoder } from './tokenizer.ts'

/** Decodes ids with a decoder; ids that are not tokens are left out. */
export function tokenDecoding(
  decoder: Decoder,
  tokenOf: (id: number) => string | undefined,
): Decoding {
  const decode = (tokens: readonly string[]) =>
    tokens.length === 0 ? '' : decoder(tokens).join('')
  const tokensOf = (ids: ArrayLike<number>, isSkipped: (id: number) => boolean) =>
    Array.from(ids).flatMap(id => (isSkipped(id) ? [] : (tokenOf(id) ?? [])))
  return {
    decode: (ids, isSkipped) => decode(tokensOf(ids, isSkipped)),
    open: isSkipped => openTokenStream(ids => tokensOf(ids, isSkipped), decode),
  }
}

/**
 * Decoders treat the first token specially, and bytes in runs. So each part is decoded together with the
 * last token before it, and a run of bytes is held back until it ends.
 */
function openTokenStream(
  tokensOf: (ids: ArrayLike<number>) => readonly string[],
  decode: (tokens: readonly string[]) => string,
): StreamDecoder {
  let previous: readonly string[] = []
  let held: string[] = []
  const tell = () => {
    const text = decode([...previous, ...held]).slice(decode(previous).length)
    if (held.length > 0) previous = held.slice(-1)
    held = []
    return text
  }
  return {
    push: ids => {
      for (const token of tokensOf(ids)) held.push(token)
      return held.length === 0 || isByteToken(held.at(-1)!) ? '' : tell()
    },
    end: tell,
  }
}
