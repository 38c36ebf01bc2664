import { readByteLevel } from './byte-level/byte-level.ts'
import { readCharacterPairs } from './character-pairs.ts'
import type { Definition } from './definition.ts'
import { UnsupportedPartError } from './fields.ts'
import type { TextModel } from './pipeline.ts'
import { readUnigram } from './unigram.ts'
import { readWordLevel } from './word-level.ts'
import { readWordPiece } from './word-piece.ts'

/** Opens the model of a tokenizer.json. */
export function makeModel(definition: Definition): TextModel {
  switch (definition.modelType) {
    case 'WordLevel':
      return readWordLevel(definition)
    case 'BPE':
      return readBpe(definition)
    case 'Unigram':
      return readUnigram(definition)
    case 'WordPiece':
      return readWordPiece(definition)
    default:
      throw new Error(
        `No tokenizer model called ${JSON.stringify(definition.modelType)}. Known: BPE, WordLevel, Unigram, WordPiece.`,
      )
  }
}

/** Over bytes if that is what the file describes, else over characters. */
function readBpe(definition: Definition): TextModel {
  try {
    return readByteLevel(definition)
  } catch (error) {
    if (error instanceof UnsupportedPartError) return readCharacterPairs(definition)
    throw error
  }
}
