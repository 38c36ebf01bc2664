import type { Definition } from './definition.ts'
import { readOptional, readText } from './fields.ts'
import { readPieceModel } from './pieces.ts'
import type { TextModel } from './pipeline.ts'
import { noToken } from './unknown.ts'
import { readVocabulary } from './vocabulary.ts'

/** Longer words are searched for their pieces in time that grows with the square of their length. */
const longestWord = 1000

/** Words cut from the left into the longest tokens there are; a word that cannot be is unknown. */
export function readWordPiece(definition: Definition): TextModel {
  const { model } = definition
  const most = readOptional(model.max_input_chars_per_word, Number) ?? 100
  if (most > longestWord) {
    throw new Error(`max_input_chars_per_word is ${most}; at most ${longestWord} is read`)
  }
  const vocabulary = readVocabulary(model.vocab)
  const prefix =
    readOptional(model.continuing_subword_prefix, value =>
      readText(value, 'model.continuing_subword_prefix'),
    ) ?? '##'
  const unknown = vocabulary.idOf(readText(model.unk_token, 'model.unk_token'))
  const partsOf = (word: string): readonly number[] | undefined => {
    const characters = [...word]
    if (characters.length > most) return undefined
    const parts: number[] = []
    for (let start = 0; start < characters.length; ) {
      let end = characters.length
      let id: number | undefined
      for (; end > start && id === undefined; end--) {
        const part = characters.slice(start, end).join('')
        id = vocabulary.idOf(start > 0 ? prefix + part : part)
      }
      if (id === undefined) return undefined
      parts.push(id)
      start = end + 1
    }
    return parts
  }
  return readPieceModel(definition, {
    vocabulary,
    encode: (word, ids) => {
      const parts = partsOf(word)
      if (parts) for (const id of parts) ids.push(id)
      else if (unknown === undefined) throw noToken(word)
      else ids.push(unknown)
    },
  })
}
