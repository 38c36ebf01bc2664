import type { Hidden } from '../python/value.ts'
import { PythonText } from '../python/value.ts'

/** Reads a text off the texts that were hidden from a rendering. */
export type Reader = (texts: readonly string[]) => string

/** Something that a rendering wanted to know about hidden texts, and what it was told. */
export interface Condition {
  readonly read: Reader
  readonly question: (text: string) => boolean
  readonly answer: boolean
}

/** A place in a text where a hidden one belongs. */
export interface Hole {
  readonly at: number
  readonly read: Reader
  /** How many UTF-16 units may come here. */
  readonly most: number
  readonly veil: Veil
}

/** Raised where a rendering looks at characters that are hidden from it. */
export class LookError extends Error {
  override name = 'LookError'
  constructor() {
    super('The template looks at the characters of a text that is hidden from it.')
  }
}

/** So many questions about one conversation; a template that asks more is better shown the texts. */
const MOST_CONDITIONS = 64

/**
 * Hides texts from one rendering and remembers what it wanted to know about them. What it wrote
 * holds for all texts about which the same answers are true, because it has seen no others.
 */
export class Veil {
  readonly conditions: Condition[] = []
  #texts: readonly string[]
  #isUnseen = true

  constructor(texts: readonly string[]) {
    this.#texts = texts
  }

  /** Whether nobody looked so far; kept besides the error, which a template's code might swallow. */
  get isUnseen(): boolean {
    return this.#isUnseen
  }

  /** The `index`-th text as a template gets it, of at most so many units. */
  hide(index: number, most: number): PythonText {
    return new PythonText(
      new HiddenText('', [{ at: 0, read: texts => texts[index]!, most, veil: this }]),
      [],
      false,
    )
  }

  /** Answers a question about what hidden texts say, and remembers it. */
  ask(read: Reader, question: Condition['question']): boolean {
    if (this.conditions.length === MOST_CONDITIONS) this.refuse()
    const answer = question(read(this.#texts))
    this.conditions.push({ read, question, answer })
    return answer
  }

  /** Forgets the texts; what was written without them may be kept for long. */
  close(): void {
    this.#texts = []
  }

  /** Refuses a look. */
  refuse(): never {
    this.#isUnseen = false
    throw new LookError()
  }
}

/** Text with holes in it, at least one. */
export class HiddenText implements Hidden {
  /** The characters around the holes. */
  readonly told: string
  readonly holes: readonly Hole[]

  constructor(told: string, holes: readonly Hole[]) {
    this.told = told
    this.holes = holes
  }

  get most(): number {
    return this.holes.reduce((sum, { most }) => sum + most, this.told.length)
  }

  get #veil(): Veil {
    return this.holes[0]!.veil
  }

  refuse(): never {
    return this.#veil.refuse()
  }

  ask(question: Condition['question']): boolean {
    return this.#veil.ask(readerOf(this.told, this.holes), question)
  }

  /** The text with its characters changed, which `most` bounds the number of. */
  change(change: (text: string) => string, most: number): PythonText {
    const source = readerOf(this.told, this.holes)
    const hole: Hole = {
      at: 0,
      read: texts => change(source(texts)),
      most,
      veil: this.#veil,
    }
    return new PythonText(new HiddenText('', [hole]), [], false)
  }
}

/** Reads the text that holes stand in, filled. */
export function readerOf(told: string, holes: readonly Hole[]): Reader {
  const [only] = holes
  if (told === '' && only && holes.length === 1) return only.read
  return texts => {
    let text = ''
    let from = 0
    for (const { at, read } of holes) {
      text += told.slice(from, at) + read(texts)
      from = at
    }
    return text + told.slice(from)
  }
}

/** The hole in a text in which its own text begins at `start`. */
export function moveHole({ at, read, most, veil }: Hole, start: number): Hole {
  return { at: at + start, read, most, veil }
}
