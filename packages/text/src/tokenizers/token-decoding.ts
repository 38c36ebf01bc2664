import { toBytes } from './byte-level/byte-alphabet.ts'
import { type Decoder, isByteToken, makeDecoder } from './decoders.ts'
import { byteDecoding, type Decoding } from './decoding.ts'
import { type Fields, readList } from './fields.ts'
import type { StreamDecoder } from './tokenizer.ts'

/** Decodes ids as the decoder of a tokenizer.json says: bytes as bytes, everything else token by token. */
export function readDecoding(
  fields: Fields | undefined,
  tokenOf: (id: number) => string | undefined,
): Decoding {
  if (!isByteLevel(fields)) return tokenDecoding(makeDecoder(fields), tokenOf)
  return byteDecoding(id => {
    const token = tokenOf(id)
    return token === undefined ? undefined : toBytes(token)
  })
}

function isByteLevel(decoder: Fields | undefined): boolean {
  if (decoder?.type !== 'Sequence') return decoder?.type === 'ByteLevel'
  const steps = readList(decoder.decoders, 'decoders of a Sequence')
  return steps.length === 1 && (steps[0] as Fields | null)?.type === 'ByteLevel'
}

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
