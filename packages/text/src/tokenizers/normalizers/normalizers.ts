import {
  type Fields,
  readFields,
  readFlag,
  readList,
  readText,
  UnsupportedPartError,
} from '../fields.ts'
import { literalPattern, toPattern } from '../patterns.ts'
import { bertSteps, lowercase, nmt, stripAccents } from './character-normalizers.ts'
import { precompiled } from './precompiled.ts'
import { type Normalizer, rewriteEach } from './rewriting.ts'
import { unicodeForm } from './unicode-form.ts'

/** Builds the normalizer of a tokenizer.json; undefined if there is none. */
export function readNormalizer(fields: Fields | undefined): Normalizer | undefined {
  if (fields === undefined) return undefined
  switch (fields.type) {
    case 'Sequence':
      return sequence(readList(fields.normalizers, 'normalizers of a Sequence'))
    case 'NFC':
    case 'NFD':
    case 'NFKC':
    case 'NFKD':
      return unicodeForm(fields.type)
    case 'Lowercase':
      return lowercase
    case 'Prepend':
      return prepend(readText(fields.prepend, 'prepend of a normalizer'))
    case 'Replace':
      return replace(fields)
    case 'Strip':
      return strip(fields)
    case 'StripAccents':
      return stripAccents
    case 'Nmt':
      return inTurn(nmt)
    case 'BertNormalizer':
      return inTurn(bertSteps(fields))
    case 'Precompiled':
      return precompiled(fields)
    default:
      throw new UnsupportedPartError(
        `The normalizer ${JSON.stringify(fields.type)} is not known. Known: NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip, StripAccents, Nmt, BertNormalizer, Precompiled, Sequence.`,
      )
  }
}

function sequence(steps: readonly unknown[]): Normalizer {
  const normalizers = steps.flatMap(step => {
    const normalizer = readNormalizer(readFields(step, 'a normalizer of a Sequence'))
    return normalizer === undefined ? [] : [normalizer]
  })
  return inTurn(normalizers)
}

const inTurn =
  (normalizers: readonly Normalizer[]): Normalizer =>
  input =>
    normalizers.reduce((text, normalizer) => normalizer(text), input)

function prepend(prefix: string): Normalizer {
  return ({ text, foreign }) => {
    if (text === '' || prefix === '') return { text, foreign }
    if (foreign === undefined) return { text: prefix + text }
    const marks = new Uint8Array(prefix.length + foreign.length)
    marks.set(foreign, prefix.length)
    return { text: prefix + text, foreign: marks }
  }
}

function replace(fields: Fields): Normalizer {
  const pattern = readFields(fields.pattern, 'pattern of a Replace')
  const content = readText(fields.content, 'content of a Replace')
  const expression =
    pattern.String === undefined
      ? toPattern(readText(pattern.Regex, 'Regex of a Replace'))
      : literalPattern(readText(pattern.String, 'String of a Replace'))
  return rewriteEach(expression, () => content)
}

function strip(fields: Fields): Normalizer {
  const left = readFlag(fields.strip_left, 'strip_left of a Strip')
  const right = readFlag(fields.strip_right, 'strip_right of a Strip')
  return ({ text, foreign }) => {
    const start = left ? /^\p{White_Space}*/u.exec(text)![0].length : 0
    let end = text.length
    while (right && end > start && /\p{White_Space}/u.test(text[end - 1]!)) end--
    return { text: text.slice(start, end), foreign: foreign?.subarray(start, end) }
  }
}
