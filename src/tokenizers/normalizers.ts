import { nativePattern, type Pattern } from '../patterns/pattern.ts'
import {
  type Fields,
  readFields,
  readFlag,
  readList,
  readText,
  UnsupportedPartError,
} from './fields.ts'
import { literalPattern, replaceEach, toPattern } from './patterns.ts'
import { inertInUnicode9 } from './unicode.ts'

/** A text, and which of its UTF-16 units are foreign; without `foreign`, none is. */
export interface Marked {
  readonly text: string
  readonly foreign?: Uint8Array | undefined
}

/** Rewrites a text before it is cut. What is made of foreign characters is foreign. */
export type Normalizer = (input: Marked) => Marked

/** Builds the normalizer of a tokenizer.json; undefined where there is none. */
export function openNormalizer(fields: Fields | undefined): Normalizer | undefined {
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
      return rewriteEach(nativePattern(/./gsu), character => character.toLowerCase())
    case 'Prepend':
      return prepend(readText(fields.prepend, 'prepend of a normalizer'))
    case 'Replace':
      return replace(fields)
    case 'Strip':
      return strip(fields)
    default:
      throw new UnsupportedPartError(
        `The normalizer ${JSON.stringify(fields.type)} is not known. Known: NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip, Sequence.`,
      )
  }
}

function sequence(steps: readonly unknown[]): Normalizer {
  const normalizers = steps.flatMap(step => {
    const normalizer = openNormalizer(readFields(step, 'a normalizer of a Sequence'))
    return normalizer === undefined ? [] : [normalizer]
  })
  return input => normalizers.reduce((text, normalizer) => normalizer(text), input)
}

/**
 * Texts of nothing but characters that do not change and have no effect on what stands before them. In
 * NFC: Latin, Cyrillic, most punctuation, symbols, what is written in China, Japan and Korea, and emoji.
 */
const QUIET = {
  NFC: /^[\0-\u02ff\u0400-\u0482\u048a-\u052f\u2010-\u205f\u2190-\u2328\u232b-\u2adb\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\ud83c-\ud83e\udc00-\udfff\uff01-\uffef]*$/,
  NFD: /^[\0-\x7f]*$/,
  NFKC: /^[\0-\x7f]*$/,
  NFKD: /^[\0-\x7f]*$/,
}

/**
 * Runs that normalize on their own: before an ASCII character nothing depends on what follows, and
 * what Unicode 9 did not know depends on nothing and nothing on it.
 */
const RUNS = nativePattern(new RegExp(`[\\0-\\x7f]?[^\\0-\\x7f${inertInUnicode9}]+`, 'gu'))
const INERT = new RegExp(`[${inertInUnicode9}]`, 'u')

function unicodeForm(form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): Normalizer {
  const quiet = QUIET[form]
  const inRuns = rewriteEach(RUNS, run => run.normalize(form))
  return input => {
    if (quiet.test(input.text)) return input
    if (INERT.test(input.text)) return inRuns(input)
    const text = input.text.normalize(form)
    if (text === input.text) return input
    return input.foreign === undefined ? { text } : inRuns(input)
  }
}

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

/** Rewrites each match; what is new in it is foreign if any of what it replaces was. */
function rewriteEach(pattern: Pattern, rewrite: (found: string) => string): Normalizer {
  return ({ text, foreign }) => {
    if (foreign === undefined) return { text: replaceEach(text, pattern, rewrite) }
    const parts: string[] = []
    const marks: Uint8Array[] = []
    let last = 0
    pattern.forEach(text, (start, end) => {
      const found = text.slice(start, end)
      const rewritten = rewrite(found)
      parts.push(text.slice(last, start), rewritten)
      marks.push(
        foreign.subarray(last, start),
        moved(found, rewritten, foreign.subarray(start, end)),
      )
      last = end
    })
    parts.push(text.slice(last))
    marks.push(foreign.subarray(last))
    return { text: parts.join(''), foreign: concatenate(marks) }
  }
}

/** The marks of a rewritten match: as before while the two agree, then all alike. */
function moved(found: string, rewritten: string, foreign: Uint8Array): Uint8Array {
  let same = 0
  while (same < found.length && found[same] === rewritten[same]) same++
  const marks = new Uint8Array(rewritten.length)
  marks.set(foreign.subarray(0, Math.min(same, rewritten.length)))
  return marks.fill(foreign.includes(1, same) ? 1 : 0, same)
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
