import { answersIn } from './answering.ts'
import { tellingWords, wordsOf } from './words.ts'

/** What can be said of a text in few words. */
export interface Facts {
  /** Its first sentence. */
  readonly opening: string
  /** Who did what to whom, in the order of the text. */
  readonly relations: readonly (readonly string[])[]
  /** Names and notions; a higher weight tells more. Equal ones keep the order of the text. */
  readonly terms: readonly Term[]
}

/** A name or notion. */
export interface Term {
  readonly text: string
  readonly weight: number
}

/** How many facts are written, and how long the first sentence may be. */
export interface FactLimits {
  /** @default 3 */
  readonly relations: number
  /** @default 8 */
  readonly terms: number
  /** Code points of the first sentence. @default 160 */
  readonly opening: number
}

/**
 * Facts as text of at most so many code points: lines `Open:`, `Asked:`, `Rel:` and `More:`, filled in
 * that order. A fact that does not fit is skipped for a later one that does; if none fits, the text's
 * beginning is used. `Asked:` quotes the sentences that answer the question and gets most of the
 * room: the number that is asked for is often in no relation and no name.
 */
export function writeFacts(
  facts: Facts,
  budget: number,
  options: { readonly limits: FactLimits; readonly query?: string; readonly text: string },
): string {
  const { limits, text } = options
  const asked = tellingWords(options.query ?? '')
  const lines = new Lines(budget)
  const answers = answersIn(text, options.query ?? '', budget - openingRoom(facts, limits, budget))
  const isOpening = answers.length === 0 || answers[0] === facts.opening
  const room = isOpening ? budget - 'Open: '.length : openingRoom(facts, limits, budget) - labels
  const opening = cutAtWord(facts.opening, Math.min(limits.opening, room))
  if (opening !== '') lines.add('Open: ', opening, '')
  for (const answer of answers) {
    if (answer !== '' && answer !== opening) lines.add('Asked: ', answer, ' ')
  }
  const known = new Set(wordsOf(lines.text))
  const fresh = facts.relations.filter(parts => isNews(parts.join(' '), known))
  const relations = byQuestion(fresh, parts => parts.join(' '), asked)
  for (const parts of relations.slice(0, limits.relations)) {
    lines.add('Rel: ', `(${parts.join(' | ')})`, '; ')
  }
  for (const term of chooseTerms(
    byQuestion(facts.terms, each => each.text, asked),
    limits,
    known,
  )) {
    lines.add('More: ', term, ', ')
  }
  return lines.text === '' ? cutAtWord(text.trim(), budget) : lines.text
}

/** The code points of `Open: `, a line break and `Asked: `. */
const labels = 14

/** Room for the first sentence, labels included, if the text answers a question: a third at most. */
function openingRoom({ opening }: Facts, limits: FactLimits, budget: number): number {
  if (limits.opening === 0) return labels
  return labels + Math.min([...opening].length, limits.opening, Math.floor(budget / 3))
}

/** Items that share words with the question come first; otherwise the order stays. */
function byQuestion<T>(
  items: readonly T[],
  textOf: (item: T) => string,
  asked: ReadonlySet<string>,
): readonly T[] {
  if (asked.size === 0) return items
  const hits = new Map(
    items.map(item => [item, wordsOf(textOf(item)).filter(word => asked.has(word)).length]),
  )
  return items.toSorted((a, b) => hits.get(b)! - hits.get(a)!)
}

/** Terms by rank, without those whose words are all written already; longer ones replace shorter ones. */
function chooseTerms(
  terms: readonly Term[],
  limits: FactLimits,
  known: ReadonlySet<string>,
): readonly string[] {
  const chosen: { readonly text: string; readonly words: ReadonlySet<string> }[] = []
  for (const { text } of terms) {
    if (chosen.length >= limits.terms) break
    const words = new Set(wordsOf(text))
    if ([...text].length < 2 || !isNews(text, known)) continue
    if (chosen.some(other => isWithin(words, other.words))) continue
    const longer = chosen.findIndex(other => isWithin(other.words, words))
    if (longer >= 0) chosen[longer] = { text, words }
    else chosen.push({ text, words })
  }
  return chosen.map(({ text }) => text)
}

/** Whether a text has a word that is not written yet. */
function isNews(text: string, known: ReadonlySet<string>): boolean {
  return wordsOf(text).some(word => !known.has(word))
}

function isWithin(some: ReadonlySet<string>, all: ReadonlySet<string>): boolean {
  return some.size <= all.size && [...some].every(word => all.has(word))
}

/** A text's beginning, cut after a word where one ends in its second half. */
export function cutAtWord(text: string, most: number): string {
  const points = [...text.slice(0, 2 * Math.max(0, most) + 2)]
  if (points.length <= most) return text
  const cut = points.slice(0, Math.max(0, most)).join('')
  const space = cut.lastIndexOf(' ')
  return (space >= cut.length / 2 ? cut.slice(0, space) : cut).trim()
}

/** Lines that never grow past their budget of code points. */
class Lines {
  readonly #budget: number
  readonly #lines = new Map<string, string>()
  #length = 0

  constructor(budget: number) {
    this.#budget = budget
  }

  add(label: string, item: string, separator: string): void {
    const line = this.#lines.get(label)
    const start = line === undefined ? `${this.#length > 0 ? '\n' : ''}${label}` : separator
    const length = [...start].length + [...item].length
    if (this.#length + length > this.#budget) return
    this.#length += length
    this.#lines.set(label, line === undefined ? `${label}${item}` : `${line}${separator}${item}`)
  }

  get text(): string {
    return [...this.#lines.values()].join('\n')
  }
}
