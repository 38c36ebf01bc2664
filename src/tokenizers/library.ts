import { createRequire } from 'node:module'
import type * as libraryPackage from '@huggingface/tokenizers'
import type { IdBuffer } from './buffers.ts'
import { type Decoder, openDecoder } from './decoders.ts'
import type { Definition } from './definition.ts'
import { readList, readText, UnsupportedPartError } from './fields.ts'
import { type Normalizer, openNormalizer } from './normalizers.ts'
import { toLiteral, toPattern } from './patterns.ts'
import type { PlainEncoder, TextModel } from './pipeline.ts'
import { tokenDecoding } from './token-decoding.ts'
import type { ControlToken } from './tokenizer.ts'
import { listVocabulary, openVocabulary, type Vocabulary } from './vocabulary.ts'

const loadPackage = createRequire(import.meta.url)

type LibraryTokenizer = libraryPackage.Tokenizer

/**
 * A model of `@huggingface/tokenizers`. The library is never given the control tokens: it would
 * recognise them in data, and it treats their white space differently than the reference.
 */
export function openLibraryModel(definition: Definition): TextModel {
  refuseSlowParts(definition)
  // Loaded here: few models need it.
  const { Tokenizer } = loadPackage('@huggingface/tokenizers') as typeof libraryPackage
  const library = new Tokenizer(
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
    openDecoding: tokenOf => tokenDecoding(openLibraryDecoder(definition, library), tokenOf),
  }
}

/** Longer words are searched for their pieces in time that grows with the square of their length. */
const longestWord = 1000

/**
 * The library uses JavaScript's regular expressions, so only patterns that these match in linear time
 * are left to it.
 */
function refuseSlowParts({ model, normalizer, preTokenizer, decoder }: Definition): void {
  for (const pattern of regexesIn([normalizer, preTokenizer, decoder], 0)) {
    if (toPattern(pattern).isNative) continue
    throw new Error(
      `The pattern ${JSON.stringify(pattern)} of tokenizer.json may take time that grows with the square of a text, beside a model of type ${JSON.stringify(model.type)}`,
    )
  }
  const longest = Number(model.max_input_chars_per_word ?? 0)
  if (longest <= longestWord) return
  throw new Error(`max_input_chars_per_word is ${longest}; at most ${longestWord} is read`)
}

function regexesIn(value: unknown, depth: number): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  if (depth > 20) throw new Error('The parts of tokenizer.json are nested too deeply')
  return Object.entries(value).flatMap(([name, each]) =>
    name === 'Regex' && typeof each === 'string' ? [each] : regexesIn(each, depth + 1),
  )
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

/** Our own decoders where we have them: the library's read invalid bytes differently. */
function openLibraryDecoder(definition: Definition, library: LibraryTokenizer): Decoder {
  try {
    return openDecoder(definition.decoder)
  } catch (error) {
    if (!(error instanceof UnsupportedPartError)) throw error
    return tokens => [library.decoder!([...tokens])]
  }
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
      // The library does not say which characters came from where, so one foreign character makes all foreign.
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
  const inside = insideOf(controls)
  const add = (piece: string, tokens: readonly string[]) => {
    for (const token of tokens) ids.push(model.tokens_to_ids.get(token) ?? unknownId(piece, model))
  }
  const encodePiece = (piece: string) => {
    const tokens: readonly string[] = model([piece])
    const isSpelled = tokens.some(token => contents.has(token) && piece.includes(token))
    if (!isSpelled) add(piece, tokens)
    else for (const part of piece.split(inside)) add(part, model([part]))
  }
  return (text, isFirst) => {
    const pieces = library.pre_tokenizer?.(text, { section_index: isFirst ? 0 : 1 }) ?? [text]
    for (const piece of pieces) encodePiece(piece)
  }
}

/**
 * The places behind the first character of each control string: data that spells one is cut there,
 * so that the model cannot make the token. A string of one character has no inside; where it is a
 * token, there is no other way to write that character.
 */
function insideOf(controls: readonly ControlToken[]): RegExp {
  const places = controls.flatMap(({ content }) => {
    const [first = '', ...rest] = [...content]
    return rest.length === 0 ? [] : [`(?<=${literal(first)})(?=${literal(rest.join(''))})`]
  })
  return new RegExp(places.length === 0 ? '(?!)' : places.join('|'), 'v')
}

function literal(text: string): string {
  return toLiteral(text).source
}

function unknownId(piece: string, { unk_token_id }: { unk_token_id?: number }): number {
  if (unk_token_id !== undefined) return unk_token_id
  throw new Error(
    `The vocabulary has no token for ${JSON.stringify(piece)}, and no unk_token to take instead`,
  )
}
