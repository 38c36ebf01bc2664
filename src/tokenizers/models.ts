import { openByteLevel } from './byte-level/byte-level.ts'
import type { Definition } from './definition.ts'
import { UnsupportedPartError } from './fields.ts'
import { openLibraryModel } from './library.ts'
import type { TextModel } from './pipeline.ts'
import { openWordLevel } from './word-level.ts'

/** Opens the model of a tokenizer.json: our own where we have one, else Hugging Face's library. */
export function openModel(definition: Definition): TextModel {
  switch (definition.modelType) {
    case 'WordLevel':
      return openWordLevel(definition)
    case 'BPE':
      return openBpe(definition)
    case 'Unigram':
    case 'WordPiece':
      return openLibraryModel(definition)
    default:
      throw new Error(
        `No tokenizer model called ${JSON.stringify(definition.modelType)}. Known: BPE, WordLevel, Unigram, WordPiece.`,
      )
  }
}

/** BPE over characters (SentencePiece) and with unusual parts is left to the library. */
function openBpe(definition: Definition): TextModel {
  try {
    return openByteLevel(definition)
  } catch (error) {
    if (error instanceof UnsupportedPartError) return openLibraryModel(definition)
    throw error
  }
}
