import type { Facts, Term } from './facts.ts'

let segmenter: Intl.Segmenter | undefined

/** Splits text of scripts that put no spaces between words; opened on first use, as that is slow. */
function makeSegmenter(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('und', { granularity: 'word' })
  return segmenter
}

/** The facts of a text in any language: its first sentence and the words it repeats most. */
export function readAnyLanguage(text: string): Facts {
  return { opening: firstSentence(text), relations: [], terms: frequentWords(text) }
}

function firstSentence(text: string): string {
  const start = text.trimStart()
  const end = /[.!?؟।](?=\s|$)|[。！？]|\n/u.exec(start)
  return end ? start.slice(0, end.index + end[0].length).trim() : start.trim()
}

/** Words weighed by how often they occur and how long they are: short, frequent words say little. */
function frequentWords(text: string): readonly Term[] {
  const counts = new Map<string, { text: string; count: number; place: number }>()
  for (const word of wordsIn(text)) {
    if (isTooShort(word)) continue
    const key = word.toLowerCase()
    const known = counts.get(key)
    if (known) known.count++
    else counts.set(key, { text: word, count: 1, place: counts.size })
  }
  return [...counts.values()]
    .map(({ text: term, count, place }) => ({ text: term, weight: count * signs(term), place }))
    .sort((a, b) => b.weight - a.weight || a.place - b.place)
    .map(({ text: term, weight }) => ({ text: term, weight }))
}

const run = /[\p{L}\p{M}\p{N}]+/gu
/** A sign of a script that puts no spaces between words. */
export const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

/** The words of a text; runs of scripts without spaces are cut. */
export function* wordsIn(text: string): Generator<string> {
  for (const [word] of text.matchAll(run)) {
    if (!unspaced.test(word)) yield word
    else for (const { segment } of makeSegmenter().segment(word)) yield segment
  }
}

/** One sign of a script without spaces, or three letters of one with them, are mostly grammar. */
function isTooShort(word: string): boolean {
  const length = signs(word)
  if (/^\p{N}/u.test(word)) return length < 2
  return unspaced.test(word) || /\p{Script=Hangul}/u.test(word) ? length < 2 : length < 4
}

function signs(word: string): number {
  return [...word].length
}

const english = new Set(
  'the of and to is was with for that by at from which are were his her their has had this'.split(
    ' ',
  ),
)

/** Whether a text reads as English: enough of its words are those that only English sentences need. */
export function isEnglish(text: string): boolean {
  const found = text.slice(0, 4000).match(/\p{L}+/gu) ?? []
  const hits = found.filter(word => english.has(word.toLowerCase())).length
  return found.length > 0 && hits / found.length >= 0.08
}
