import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers'
import type { ControlToken, StreamDecoder } from '../tokenizer.ts'
import type { IdBuffer } from './buffers.ts'
import type { Decoding } from './decoding.ts'
import type { Definition } from './definition.ts'
import { readList, readText, UnsupportedPartError } from './fields.ts'
import { type Normalizer, openNormalizer } from './normalizers.ts'
import type { PlainEncoder, TextModel } from './pipeline.ts'
import { listVocabulary, openVocabulary, type Vocabulary } from './vocabulary.ts'

/**
 * A model of `@huggingface/tokenizers`. The library is never shown a control token: it would
 * recognise them in data, and its way with their white space is not the reference's.
 */
export function openLibraryModel(definition: Definition): TextModel {
  const library = new LibraryTokenizer(
    {
      normalizer: definition.normalizer ?? null,
      pre_tokenizer: definition.preTokenizer ?? null,
      model: { ...definition.model, type: definition.modelType },
      decoder: definition.decoder ?? null,
      post_processor: null,
      added_tokens: [],
    },
    {},
  )
  const vocabulary = readVocabulary(definition)
  return {
    vocabulary,
    normalize: openLibraryNormalizer(definition, library),
    openEncoder: (controls, ids) => openPlainEncoder(library, controls, ids),
    openDecoding: tokenOf => openDecoding(library, tokenOf),
  }
}

function readVocabulary({ modelType, model }: Definition): Vocabulary {
  if (modelType !== 'Unigram') return openVocabulary(model.vocab)
  const pieces = readList(model.vocab, 'model.vocab')
  return listVocabulary(
    pieces.map((piece, id) => {
      const where = `model.vocab[${id}]`
      return readText(readList(piece, where)[0], where)
    }),
  )
}

/** Our own normalizers where we have them: they know which characters are foreign. */
function openLibraryNormalizer(
  definition: Definition,
  library: LibraryTokenizer,
): Normalizer | undefined {
  try {
    return openNormalizer(definition.normalizer)
  } catch (error) {
    if (!(error instanceof UnsupportedPartError)) throw error
    return ({ text, foreign }) => {
      const normalized = library.normalizer?.(text) ?? text
      if (foreign === undefined) return { text: normalized }
      if (normalized === text) return { text, foreign }
      // Which characters came from where is not told, so one foreign character makes all foreign.
      const mark = foreign.includes(1) ? 1 : 0
      return { text: normalized, foreign: new Uint8Array(normalized.length).fill(mark) }
    }
  }
}

function openPlainEncoder(
  library: LibraryTokenizer,
  controls: readonly ControlToken[],
  ids: IdBuffer,
): PlainEncoder {
  const model = library.model!
  const contents = new Set(controls.map(control => control.content))
  const encodePiece = (piece: string) => {
    const tokens: readonly string[] = model([piece])
    const spelled = tokens.find(token => contents.has(token) && piece.includes(token))
    if (spelled === undefined) {
      for (const token of tokens)
        ids.push(model.tokens_to_ids.get(token) ?? unknownId(piece, model))
      return
    }
    // Data that spells a control token is cut inside it, so that the model cannot make it.
    const cut = piece.indexOf(spelled) + 1
    encodePiece(piece.slice(0, cut))
    encodePiece(piece.slice(cut))
  }
  return (text, isFirst) => {
    if (text === '') return
    const pieces = library.pre_tokenizer?.(text, { section_index: isFirst ? 0 : 1 }) ?? [text]
    for (const piece of pieces) encodePiece(piece)
  }
}

function unknownId(piece: string, { unk_token_id }: { unk_token_id?: number }): number {
  if (unk_token_id !== undefined) return unk_token_id
  throw new Error(
    `The vocabulary has no token for ${JSON.stringify(piece)}, and no unk_token to take instead`,
  )
}

const BYTE_TOKEN = /^<0x[0-9A-F]{2}>$/

function openDecoding(
  library: LibraryTokenizer,
  tokenOf: (id: number) => string | undefined,
): Decoding {
  const decodeTokens = (tokens: readonly string[]) => {
    if (tokens.length === 0) return ''
    return library.decoder?.([...tokens]) ?? tokens.join(' ')
  }
  const tokensOf = (ids: ArrayLike<number>, isSkipped: (id: number) => boolean) =>
    Array.from(ids).flatMap(id => (isSkipped(id) ? [] : (tokenOf(id) ?? [])))
  return {
    decode: (ids, isSkipped) => decodeTokens(tokensOf(ids, isSkipped)),
    open: isSkipped => openTokenStream(ids => tokensOf(ids, isSkipped), decodeTokens),
  }
}

/**
 * Decoders treat the first token in a special way, and bytes in runs. So each part is decoded behind
 * the last token already told, and a run of bytes is held until it ends.
 */
function openTokenStream(
  tokensOf: (ids: ArrayLike<number>) => readonly string[],
  decode: (tokens: readonly string[]) => string,
): StreamDecoder {
  let told: readonly string[] = []
  let held: string[] = []
  const tell = () => {
    const text = decode([...told, ...held]).slice(decode(told).length)
    if (held.length > 0) told = held.slice(-1)
    held = []
    return text
  }
  return {
    push: ids => {
      for (const token of tokensOf(ids)) held.push(token)
      return held.length === 0 || BYTE_TOKEN.test(held.at(-1)!) ? '' : tell()
    },
    end: tell,
  }
}
