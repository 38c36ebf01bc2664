import { IdBuffer } from './buffers.ts'
import { NO_RANK } from './byte-level/borders.ts'
import { join } from './byte-level/joiner.ts'
import { type Merges, readMerges } from './byte-level/merges.ts'
import type { Definition } from './definition.ts'
import { readFlag, readOptional, readText } from './fields.ts'
import { readPieceModel } from './pieces.ts'
import type { TextModel } from './pipeline.ts'
import { byteWriter } from './unknown.ts'
import { readVocabulary, type Vocabulary } from './vocabulary.ts'

/** Byte pair encoding over characters: SentencePiece's, as Llama 2, Mistral and Gemma have it. */
export function readCharacterPairs(definition: Definition): TextModel {
  const { model } = definition
  if (model.dropout) throw new Error('model.dropout draws at random; a tokenizer must not')
  const vocabulary = readVocabulary(model.vocab)
  const affix = (name: string) =>
    readOptional(model[name], value => readText(value, `model.${name}`)) ?? ''
  const prefix = affix('continuing_subword_prefix')
  const merges = readMerges(model.merges, vocabulary, prefix.length)
  const isWhole = readFlag(model.ignore_merges, 'model.ignore_merges')
  const addSymbols = symbolWriter(definition, vocabulary, {
    prefix,
    suffix: affix('end_of_word_suffix'),
  })
  const symbols = new IdBuffer()
  return readPieceModel(definition, {
    vocabulary,
    encode: (piece, ids) => {
      const whole = isWhole ? vocabulary.idOf(piece) : undefined
      if (whole !== undefined) ids.push(whole)
      else
        ids.add(
          joined(
            symbols.gather(() => addSymbols(piece, symbols)),
            merges,
          ),
        )
    },
  })
}

function joined(symbols: Int32Array, merges: Merges): Int32Array {
  if (symbols.length === 0) return symbols
  const ranks = new Int32Array(symbols.length).fill(NO_RANK)
  for (let at = 0; at < symbols.length - 1; at++) {
    ranks[at] = merges.rank(symbols[at]!, symbols[at + 1]!)
  }
  return symbols.subarray(0, join({ symbols, ranks }, symbols.length, merges))
}

interface Affixes {
  /** Before every character but the first. */
  readonly prefix: string
  /** Behind the last character. */
  readonly suffix: string
}

/**
 * Writes the characters of a piece as symbols. One without a token becomes its bytes, or the unknown
 * token, or, if there is neither, nothing: then its neighbours meet, as in the reference.
 */
function symbolWriter(
  { model }: Definition,
  vocabulary: Vocabulary,
  { prefix, suffix }: Affixes,
): (piece: string, symbols: IdBuffer) => void {
  const writeBytes = byteWriter(vocabulary, readFlag(model.byte_fallback, 'model.byte_fallback'))
  const isFused = readFlag(model.fuse_unk, 'model.fuse_unk')
  const unknown = readOptional(model.unk_token, token =>
    vocabulary.idOf(readText(token, 'model.unk_token')),
  )
  return (piece, symbols) => {
    let isPending = false
    const flush = () => {
      if (isPending) symbols.push(unknown!)
      isPending = false
    }
    for (let at = 0; at < piece.length; ) {
      const character = String.fromCodePoint(piece.codePointAt(at)!)
      const start = at > 0 ? prefix : ''
      at += character.length
      const symbol = start + character + (at === piece.length ? suffix : '')
      const id = vocabulary.idOf(symbol)
      if (id !== undefined) {
        flush()
        symbols.push(id)
      } else if (!writeBytes(symbol, symbols) && unknown !== undefined) {
        if (!isFused) flush()
        isPending = true
      }
    }
    flush()
  }
}
