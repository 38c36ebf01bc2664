import { createRequire } from 'node:module'
import type { PartOfSpeech, WinkMethods } from 'wink-nlp'
import { missingPackage } from '../../base/core/names/missing-package.ts'
import type { Facts, Term } from './facts.ts'

interface Word {
  readonly text: string
  readonly pos: PartOfSpeech
  /** White space before it. */
  readonly gap: string
}

/** A run of words that belong together: a noun phrase, a verb phrase, a preposition, anything else. */
interface Phrase {
  readonly kind: 'noun' | 'verb' | 'preposition' | 'other'
  readonly words: readonly Word[]
}

const packages = ['wink-nlp', 'wink-eng-lite-web-model'] as const

/** Throws with the line that installs what English is read with, if it is not there. */
export function requireEnglish(
  resolve: (name: string) => string = createRequire(import.meta.url).resolve,
): void {
  try {
    for (const name of packages) resolve(name)
  } catch (cause) {
    throw missingPackage('The condenser "keyword"', packages.join(' '), cause)
  }
}

let opened: Promise<WinkMethods> | undefined

/** The language model is large, so it is loaded once, on first use. */
function loadWink(): Promise<WinkMethods> {
  opened ??= Promise.all([import('wink-nlp'), import('wink-eng-lite-web-model')]).then(
    ([wink, model]) => wink.default(model.default, ['sbd', 'pos', 'ner']),
  )
  return opened
}

/** The facts of an English text: names, noun phrases, and who did what to whom. */
export async function readEnglish(text: string): Promise<Facts> {
  const wink = await loadWink()
  const { its } = wink
  const document = wink.readDoc(text)
  const values = document.tokens().out() as string[]
  const parts = document.tokens().out(its.pos) as PartOfSpeech[]
  const gaps = document.tokens().out(its.precedingSpaces) as string[]
  const words = values.map((value, index) => ({
    text: value,
    pos: parts[index]!,
    gap: gaps[index]!,
  }))
  const spans = document.sentences().out(its.span) as unknown as (readonly [number, number])[]
  const sentences = spans.map(([first, last]) => phrasesOf(words.slice(first, last + 1)))
  const dates = document.entities().out(its.detail) as readonly { value: string; type: string }[]
  const opening = spans.map(([first, last]) => textOf(words.slice(first, last + 1))).find(Boolean)
  return {
    opening: opening ?? '',
    relations: relationsOf(sentences),
    terms: termsOf(
      sentences.flat(),
      dates.filter(({ type }) => type === 'DATE').map(each => each.value),
    ),
  }
}

function textOf(words: readonly Word[]): string {
  const joined = words.map(({ text, gap }) => (gap === '' ? text : ` ${text}`)).join('')
  return joined.replace(/\s+/g, ' ').trim()
}

const nominal = new Set<PartOfSpeech>(['NOUN', 'PROPN'])
const possessive = new Set(['his', 'her', 'its', 'their', 'my', 'our', 'your'])

/** Cuts a sentence into phrases, from left to right. */
function phrasesOf(words: readonly Word[]): readonly Phrase[] {
  const phrases: Phrase[] = []
  for (let at = 0; at < words.length; ) {
    const phrase = nounPhrase(words, at) ?? verbPhrase(words, at) ?? single(words[at]!)
    phrases.push(phrase)
    at += phrase.words.length
  }
  return phrases
}

function single(word: Word): Phrase {
  return { kind: word.pos === 'ADP' ? 'preposition' : 'other', words: [word] }
}

/** A noun with what stands before it, hyphens included, and with what an `of` adds to it. */
function nounPhrase(words: readonly Word[], start: number): Phrase | undefined {
  const end = nounEnd(words, start)
  if (end === undefined) return undefined
  const isOf = words[end]?.text.toLowerCase() === 'of'
  const more = isOf ? nounEnd(words, end + 1) : undefined
  return { kind: 'noun', words: words.slice(start, more ?? end) }
}

/** Where the nouns that begin here end; a verb counts only inside a word with a hyphen. */
function nounEnd(words: readonly Word[], start: number): number | undefined {
  let end: number | undefined
  for (let at = start; at < words.length; at++) {
    const { pos } = words[at]!
    if (nominal.has(pos)) end = at + 1
    else if (isHyphen(words, at)) continue
    else if (pos === 'VERB' || pos === 'ADV') {
      if (!isHyphen(words, at - 1) && !isHyphen(words, at + 1)) break
    } else if (end !== undefined) break
    else if (at === start ? !canBegin(words[at]!) : pos !== 'ADJ' && pos !== 'NUM') break
  }
  return end
}

function canBegin({ pos, text }: Word): boolean {
  if (pos === 'PRON') return possessive.has(text.toLowerCase())
  return pos === 'DET' || pos === 'ADJ' || pos === 'NUM'
}

function isHyphen(words: readonly Word[], at: number): boolean {
  const word = words[at]
  return word?.text === '-' && word.gap === '' && words[at + 1]?.gap === ''
}

/** Auxiliaries and adverbs up to a verb; an auxiliary alone is one too. */
function verbPhrase(words: readonly Word[], start: number): Phrase | undefined {
  let end: number | undefined
  for (let at = start; at < words.length; at++) {
    const { pos } = words[at]!
    if (pos === 'VERB') {
      end = at + 1
      break
    }
    if (pos === 'AUX') end = at + 1
    else if (!(pos === 'ADV' || pos === 'PART') || end === undefined) break
  }
  return end === undefined ? undefined : { kind: 'verb', words: words.slice(start, end) }
}

function relationsOf(sentences: readonly (readonly Phrase[])[]): readonly (readonly string[])[] {
  const relations = new Map<string, readonly string[]>()
  for (const phrases of sentences) {
    phrases.forEach((phrase, at) => {
      const relation = phrase.kind === 'verb' ? relationAt(phrases, at) : undefined
      if (relation) relations.set(relation.join('|').toLowerCase(), relation)
    })
  }
  return [...relations.values()]
}

/** Subject, verb, object and the first thing that a preposition adds; nothing without a subject. */
function relationAt(phrases: readonly Phrase[], at: number): readonly string[] | undefined {
  const subject = subjectBefore(phrases, at)
  const verb = textOf(phrases[at]!.words)
  if (subject === undefined) return undefined
  const [object, next] = nounAfter(phrases, at + 1)
  const preposition = phrases[next]
  const [target] = preposition?.kind === 'preposition' ? nounAfter(phrases, next + 1) : []
  const link = preposition ? textOf(preposition.words) : ''
  if (object === undefined) return target ? [subject, `${verb} ${link}`, target] : undefined
  return target ? [subject, verb, object, `${link} ${target}`] : [subject, verb, object]
}

/** The nearest noun phrase before a verb that no preposition governs, without crossing a pronoun. */
function subjectBefore(phrases: readonly Phrase[], at: number): string | undefined {
  for (let place = at - 1; place >= 0; place--) {
    const { kind, words } = phrases[place]!
    if (kind === 'noun' && phrases[place - 1]?.kind !== 'preposition') {
      return nameOf(explained(phrases, place)?.words ?? words)
    }
    if (words[0]!.pos === 'PRON' && !relative.has(words[0]!.text.toLowerCase())) return undefined
  }
  return undefined
}

/** What an apposition such as `, a composer,` explains. */
function explained(phrases: readonly Phrase[], at: number): Phrase | undefined {
  const [name, comma] = phrases.slice(Math.max(0, at - 2), at)
  const isApposition = phrases[at]!.words[0]!.pos === 'DET' && comma?.words[0]?.text === ','
  return isApposition && name?.kind === 'noun' ? name : undefined
}

const relative = new Set(['which', 'who', 'that', 'whom'])

/** The noun phrase that follows at once, and where the sentence goes on after it. */
function nounAfter(phrases: readonly Phrase[], at: number): readonly [string | undefined, number] {
  const phrase = phrases[at]
  if (phrase?.kind !== 'noun') return [undefined, at]
  const name = nameOf(phrase.words)
  return [name === '' ? undefined : name, at + 1]
}

const leading = new Set<PartOfSpeech>(['DET', 'PRON', 'PUNCT'])

/** A noun phrase without the articles and possessives before it. */
function nameOf(words: readonly Word[]): string {
  const first = words.findIndex(({ pos }) => !leading.has(pos))
  return first < 0 ? '' : textOf(words.slice(first))
}

/** Names weigh 10, dates as much, single proper nouns 2, other noun phrases 1. */
function termsOf(phrases: readonly Phrase[], dates: readonly string[]): readonly Term[] {
  const weights = new Map<string, { term: Term; place: number }>()
  const add = (text: string, weight: number): void => {
    const key = text.toLowerCase()
    const old = weights.get(key)
    if (text === '' || (old && old.term.weight >= weight)) return
    weights.set(key, { term: { text, weight }, place: old?.place ?? weights.size })
  }
  for (const { kind, words } of phrases) {
    if (kind !== 'noun') continue
    const proper = properRun(words)
    if (proper !== '') add(proper, proper.includes(' ') ? 10 : 9)
    add(nameOf(dropNumbers(words)), 1)
  }
  for (const date of dates) add(date, 10)
  return [...weights.values()]
    .sort((a, b) => b.term.weight - a.term.weight || a.place - b.place)
    .map(({ term }) => term)
}

/** From the first proper noun of a phrase to its last. */
function properRun(words: readonly Word[]): string {
  const first = words.findIndex(({ pos }) => pos === 'PROPN')
  const last = words.findLastIndex(({ pos }) => pos === 'PROPN')
  return first < 0 ? '' : textOf(words.slice(first, last + 1))
}

function dropNumbers(words: readonly Word[]): readonly Word[] {
  const first = words.findIndex(({ pos }) => pos !== 'NUM' && !leading.has(pos))
  return first < 0 ? words : words.slice(first)
}
