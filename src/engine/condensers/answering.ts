import { unspaced, wordsIn } from './frequency.ts'
import { tellingWords } from './words.ts'

/** Sentences that a question's answer may take; the second often says what the first one's `it` is. */
const most = 2
/** The share of the question's words that a text must have before a sentence of it counts as an answer. */
const least = 1 / 3

/**
 * The sentences of a text that share the most words with a question, best first. A sentence that refers
 * back also counts for what it refers to; one with a number counts more if the question asks for a
 * number. A sentence longer than `room` code points is cut around the words that were asked for.
 */
export function answersIn(text: string, query: string, room: number): readonly string[] {
  const asked = new Set([...tellingWords([...wordsIn(query)].join(' '))].map(stem))
  const sentences = sentencesOf(text).map(sentence => ({ sentence, words: stemsOf(sentence) }))
  const weights = weigh(asked, sentences)
  if (asked.size === 0 || weights.size < asked.size * least) return []
  const number = asksForNumber.test(query) ? Math.max(...weights.values()) : 0
  const own = sentences.map(({ words }) => total(words, weights))
  const scores = sentences.map(({ sentence }, at) => {
    const before = Math.max(own[at - 1] ?? 0, 0.8 * (own[at - 2] ?? 0))
    const score = own[at]! + (refersBack.test(sentence) ? 0.7 * before : 0)
    return score > 0 && hasNumber.test(sentence) ? score + number : score
  })
  const best = Math.max(...scores)
  return sentences
    .map(({ sentence }, at) => ({ sentence, score: scores[at]! }))
    .filter(({ score }) => score > 0 && score >= best / 2)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ sentence }) => cutAround(sentence, room, { weights, number }))
}

/** Questions whose answer is most often a number. */
const asksForNumber =
  /\b(how (many|much|old|long|far|high|tall|big|large|often|soon)|when|number|numbers|count|year|date|deadline|time|room|price|cost|costs|budget|fee|sum|amount|total|code|pin|phone|percent|percentage|share|score|size|version|age)\b/i
const hasNumber = /\p{N}/u
const refersBack = /\b(it|its|they|them|their|this|that|these|those|he|she|his|her|him)\b/i

/** Sentences and lines of a text. Full stops only end one before white space, so that 3.14 stays whole. */
function sentencesOf(text: string): readonly string[] {
  const found = text.match(/[^\s.!?؟।。！？][^\n]*?(?:[.!?؟।](?=\s|$)|[。！？]|(?=\n)|$)/gu) ?? []
  return found.map(sentence => sentence.trim())
}

function stemsOf(text: string): readonly string[] {
  return [...wordsIn(text)].map(word => stem(word.toLowerCase()))
}

/** `costs` and `cost`, `moved` and `move` are one word; other languages keep most of theirs. */
function stem(word: string): string {
  const short = word.replace(/(?:ing|ed|es|s|e)$/, '')
  return short.length >= 3 ? short : word
}

/** The weight of each question word found in the text; a word in every sentence weighs little. */
function weigh(
  asked: ReadonlySet<string>,
  sentences: readonly { readonly words: readonly string[] }[],
): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const word of asked) {
    const count = sentences.filter(({ words }) => words.includes(word)).length
    if (count > 0) weights.set(word, Math.log(1 + sentences.length / count))
  }
  return weights
}

function total(words: readonly string[], weights: ReadonlyMap<string, number>): number {
  return [...new Set(words)].reduce((sum, word) => sum + (weights.get(word) ?? 0), 0)
}

/** Words with the white space behind them, and single signs of scripts that put none between words. */
const pieces = new RegExp(`${unspaced.source}\\s*|(?:(?!${unspaced.source})\\S)+\\s*`, 'gu')

/** The part of a sentence, whole words and not longer than the room, that has most of what was asked. */
function cutAround(
  sentence: string,
  room: number,
  { weights, number }: { readonly weights: ReadonlyMap<string, number>; readonly number: number },
): string {
  if (lengthOf(sentence) <= room) return sentence
  const words = sentence.match(pieces) ?? []
  const windows = words
    .map((_, start) => ({ start, end: endOf(words, start, room - 2) }))
    .filter(({ start, end }) => end > start)
    .map(({ start, end }) => {
      const part = words.slice(start, end)
      // A number counts only if the word behind it, which says what it counts, fits too.
      const counted = end === words.length ? part : part.slice(0, -1)
      const hasCountedNumber = hasNumber.test(counted.join(''))
      const value = total(stemsOf(part.join('')), weights) + (hasCountedNumber ? 3 * number : 0)
      return { part, start, value }
    })
  const best = Math.max(...windows.map(each => each.value))
  const equal = windows.filter(each => each.value === best)
  // Among equal windows take the middle one, which leaves context on both sides.
  const chosen = equal[Math.floor((equal.length - 1) / 2)]
  if (!chosen) return ''
  const isEnd = chosen.start + chosen.part.length === words.length
  return `${chosen.start > 0 ? '…' : ''}${chosen.part.join('').trim()}${isEnd ? '' : '…'}`
}

/** Behind the last word that fits. */
function endOf(words: readonly string[], start: number, room: number): number {
  let end = start
  let length = 0
  while (end < words.length && length + lengthOf(words[end]!.trim()) <= room) {
    length += lengthOf(words[end]!)
    end++
  }
  return end
}

function lengthOf(text: string): number {
  return [...text].length
}
