import { Cuts, type IdBuffer, toUnits } from './buffers.ts'
import { isWhiteSpace } from './controls.ts'
import { makeDecoder } from './decoders.ts'
import { byteDecoding } from './decoding.ts'
import type { Definition } from './definition.ts'
import { type Fields, readFlag, readList, readOptional, readText } from './fields.ts'
import { readNormalizer } from './normalizers/normalizers.ts'
import type { PlainEncoder, TextModel } from './pipeline.ts'
import { readPreTokenizer, type Splitter } from './splitters.ts'
import { tokenDecoding } from './token-decoding.ts'
import type { ControlToken } from './tokenizer.ts'
import { byteToken, byteTokens, noToken } from './unknown.ts'
import { readVocabulary, type Vocabulary } from './vocabulary.ts'

const utf8 = new TextEncoder()

/**
 * A model whose tokens are whole pieces. With `byte_fallback: true`, which is ours alone, an unknown
 * piece becomes its bytes as tokens `<0x00>` to `<0xFF>`; text that spells such a token does not
 * become one. If the pre-tokenizer removes nothing and the decoder fuses, every text comes back.
 */
export function readWordLevel(definition: Definition): TextModel {
  const { model } = definition
  const vocabulary = readVocabulary(model.vocab)
  const preTokenizer = readPreTokenizer(definition.preTokenizer)
  if (preTokenizer.isByteLevel) throw new Error('A WordLevel model cannot read ByteLevel pieces')
  const hasBytes = readFlag(model.byte_fallback, 'model.byte_fallback')
  const bytes = hasBytes ? allBytes(vocabulary) : undefined
  if (hasBytes) requireFusing(definition.decoder)
  const unknown = readOptional(model.unk_token, token => readText(token, 'model.unk_token'))
  const onUnknown = bytes === undefined ? unknownToken(unknown, vocabulary) : asBytes(bytes)
  return {
    vocabulary,
    normalize: readNormalizer(definition.normalizer),
    openEncoder: (controls, ids) => {
      const lookUp = makeLookUp(vocabulary, controls, bytes)
      return makePlainEncoder(preTokenizer.split, { ids, lookUp, onUnknown })
    },
    openDecoding: tokenOf => {
      if (bytes === undefined) return tokenDecoding(makeDecoder(definition.decoder), tokenOf)
      const byteOf = new Map(bytes.map((id, byte) => [id, Uint8Array.of(byte)]))
      return byteDecoding(id => byteOf.get(id) ?? encoded(tokenOf(id)))
    },
  }
}

interface Words {
  readonly ids: IdBuffer
  lookUp(piece: string): number | undefined
  onUnknown(piece: string, ids: IdBuffer): void
}

function makePlainEncoder(split: Splitter, { ids, lookUp, onUnknown }: Words): PlainEncoder {
  const all = new Cuts()
  return text => {
    const units = toUnits(text)
    all.clear().add(0, text.length)
    const pieces = split({ text, units }, all)
    for (let index = 0; index < pieces.count; index++) {
      const piece = text.slice(pieces.start(index), pieces.end(index))
      const id = lookUp(piece)
      if (id === undefined) onUnknown(piece, ids)
      else ids.push(id)
    }
  }
}

/** The id of a piece, except for tokens that plain text must not become. */
function makeLookUp(
  vocabulary: Vocabulary,
  controls: readonly ControlToken[],
  bytes: readonly number[] | undefined,
): (piece: string) => number | undefined {
  const telling = controls.filter(control => !isWhiteSpace(control))
  const forbidden = new Set([...telling.map(control => control.id), ...(bytes ?? [])])
  return piece => {
    const id = vocabulary.idOf(piece)
    return id === undefined || forbidden.has(id) ? undefined : id
  }
}

function unknownToken(unknown: string | undefined, vocabulary: Vocabulary): Words['onUnknown'] {
  const id = unknown === undefined ? undefined : vocabulary.idOf(unknown)
  return (piece, ids) => {
    if (id === undefined) throw noToken(piece)
    ids.push(id)
  }
}

function asBytes(bytes: readonly number[]): Words['onUnknown'] {
  return (piece, ids) => {
    for (const byte of utf8.encode(piece)) ids.push(bytes[byte]!)
  }
}

/** The ids of `<0x00>` to `<0xFF>`, all of which must be there. */
function allBytes(vocabulary: Vocabulary): readonly number[] {
  return byteTokens(vocabulary).map((id, byte) => {
    if (id !== undefined) return id
    throw new Error(`byte_fallback needs the token ${byteToken(byte)} in model.vocab`)
  })
}

/** Throws unless the decoder joins tokens without anything between them, which bytes need. */
function requireFusing(decoder: Fields | undefined): void {
  const steps = decoder?.type === 'Sequence' ? decoder.decoders : [decoder]
  const types = readList(steps, 'decoders of a Sequence').map(step => (step as Fields)?.type)
  if (types.every(type => type === 'Fuse' || type === 'ByteFallback')) return
  throw new Error(
    `byte_fallback needs the decoder Fuse, ByteFallback or a Sequence of these, but there is ${JSON.stringify(decoder)}`,
  )
}

function encoded(token: string | undefined): Uint8Array | undefined {
  return token === undefined ? undefined : utf8.encode(token)
}
