import { Cuts, toUnits } from '../buffers.ts'
import type { Definition } from '../definition.ts'
import { readFlag, UnsupportedPartError } from '../fields.ts'
import { readNormalizer } from '../normalizers/normalizers.ts'
import type { PlainEncoder, TextModel } from '../pipeline.ts'
import { type PreTokenizer, readPreTokenizer } from '../splitters.ts'
import { readDecoding } from '../token-decoding.ts'
import { readVocabulary, type Vocabulary } from '../vocabulary.ts'
import { unitOfByte } from './byte-alphabet.ts'
import { BytePairs } from './byte-pairs.ts'
import { readMerges } from './merges.ts'

/**
 * Byte-level BPE, the model of GPT, Llama 3, Qwen, DeepSeek and most others today. Throws
 * `UnsupportedPartError` for a BPE model that is not of this kind.
 */
export function readByteLevel(definition: Definition): TextModel {
  // What stays in use afterwards is taken out of the definition: its merges as read are millions of bytes.
  const { model, decoder } = definition
  const preTokenizer = readPreTokenizer(definition.preTokenizer)
  if (!preTokenizer.isByteLevel) throw new UnsupportedPartError('BPE without a ByteLevel step')
  const normalize = readNormalizer(definition.normalizer)
  const vocabulary = readVocabulary(model.vocab)
  requirePlain(definition, vocabulary)
  const merges = readMerges(model.merges, vocabulary)
  const ignoreMerges = readFlag(model.ignore_merges, 'model.ignore_merges')
  return {
    vocabulary,
    normalize,
    openEncoder: (controls, ids) => {
      const forbidden = new Set(controls.map(control => control.id))
      const isForbidden = (id: number) => forbidden.has(id)
      const pairs = new BytePairs({ vocabulary, merges, ignoreMerges, isForbidden }, ids)
      return makePlainEncoder(preTokenizer, pairs)
    },
    openDecoding: tokenOf => readDecoding(decoder, tokenOf),
  }
}

/** Words that begin or continue in a special way, unknown bytes and dropout are not of this kind. */
function requirePlain({ model }: Definition, vocabulary: Vocabulary): void {
  const affix = model.continuing_subword_prefix || model.end_of_word_suffix
  const isKnown = (unit: number) => vocabulary.idOf(String.fromCharCode(unit)) !== undefined
  const writesUnknown = model.byte_fallback || model.unk_token != null
  const isPlain = !affix && !model.dropout && (!writesUnknown || unitOfByte.every(isKnown))
  if (!isPlain) throw new UnsupportedPartError('BPE with affixes, dropout or unknown bytes')
}

function makePlainEncoder({ split, prefixesBlank }: PreTokenizer, pairs: BytePairs): PlainEncoder {
  const all = new Cuts()
  return given => {
    const text = prefixesBlank && !given.startsWith(' ') ? ` ${given}` : given
    const units = toUnits(text)
    all.clear().add(0, text.length)
    pairs.encodeAll(units, split({ text, units }, all))
  }
}
