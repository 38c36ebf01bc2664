import { nativePattern } from '../../patterns/pattern.ts'
import { inertInUnicode9 } from '../unicode.ts'
import { type Normalizer, rewriteEach } from './rewriting.ts'

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

/** One of Unicode's four normal forms. */
export function unicodeForm(form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): Normalizer {
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
