import { openByteLevel } from './byte-level/byte-level.ts'
import { openCharacterPairs } from './character-pairs.ts'
import type { Definition } from './definition.ts'
import { UnsupportedPartError } from './fields.ts'
import type { TextModel } from './pipeline.ts'
import { openUnigram } from './unigram.ts'
import { openWordLevel } from './word-level.ts'
import { openWordPiece } from './word-piece.ts'

/** Opens the model of a tokenizer.json. */
export function openModel(definition: Definition): TextModel {
  switch (definition.modelType) {
    case 'WordLevel':
      return openWordLevel(definition)
    case 'BPE':
      return openBpe(definition)
    case 'Unigram':
      return openUnigram(definition)
    case 'WordPiece':
      return openWordPiece(definition)
    default:
      throw new Error(
        `No tokenizer model called ${JSON.stringify(definition.modelType)}. Known: BPE, WordLevel, Unigram, WordPiece.`,
      )
  }
}

/** Over bytes if that is what the file describes, else over characters. */
function openBpe(definition: Definition): TextModel {
  try {
    return openByteLevel(definition)
  } catch (error) {
    if (error instanceof UnsupportedPartError) return openCharacterPairs(definition)
    throw error
  }
}
