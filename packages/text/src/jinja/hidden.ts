import type { Hidden } from './template-text.ts'
import { TemplateText } from './template-text.ts'

/** Computes a text from the texts that were hidden from a rendering. */
export type TextSource = (texts: readonly string[]) => string

/** Something that a rendering wanted to know about hidden texts, and the answer. */
export interface Condition {
  readonly read: TextSource
  readonly question: (text: string) => boolean
  readonly answer: boolean
}

/** A place in a text where a hidden one belongs. */
export interface Hole {
  readonly at: number
  readonly read: TextSource
  /** How many UTF-16 units may come here. */
  readonly most: number
  readonly contents: HiddenContents
}

/** Raised when a rendering reads characters that are hidden from it. */
class HiddenTextError extends Error {
  override name = 'HiddenTextError'
  constructor() {
    super('The template looks at the characters of a text that is hidden from it.')
  }
}

/** Most conditions per rendering; a template that needs more is shown the texts instead. */
const MOST_CONDITIONS = 64

/**
 * Hides texts from one rendering and remembers what it wanted to know about them. What it wrote
 * holds for all texts about which the same answers are true, because it has seen no others.
 */
export class HiddenContents {
  readonly conditions: Condition[] = []
  #texts: readonly string[]
  #isUnseen = true

  constructor(texts: readonly string[]) {
    this.#texts = texts
  }

  /** Whether nothing was read so far; kept beside the error, which template code might swallow. */
  get isUnseen(): boolean {
    return this.#isUnseen
  }

  /** The `index`-th text as a template gets it, of at most so many units. */
  hide(index: number, most: number): TemplateText {
    return new TemplateText(
      new HiddenText('', [{ at: 0, read: texts => texts[index]!, most, contents: this }]),
      [],
      false,
    )
  }

  /** Answers a question about what hidden texts say, and remembers it. */
  ask(read: TextSource, question: Condition['question']): boolean {
    if (this.conditions.length === MOST_CONDITIONS) this.refuse()
    const answer = question(read(this.#texts))
    this.conditions.push({ read, question, answer })
    return answer
  }

  /** Forgets the texts; what was written without them may be kept for long. */
  close(): void {
    this.#texts = []
  }

  /** Records that a text was read, and raises. */
  refuse(): never {
    this.#isUnseen = false
    throw new HiddenTextError()
  }
}

/** Text with holes in it, at least one. */
export class HiddenText implements Hidden {
  /** The characters around the holes. */
  readonly visible: string
  readonly holes: readonly Hole[]

  constructor(visible: string, holes: readonly Hole[]) {
    this.visible = visible
    this.holes = holes
  }

  get most(): number {
    return this.holes.reduce((sum, { most }) => sum + most, this.visible.length)
  }

  get #contents(): HiddenContents {
    return this.holes[0]!.contents
  }

  refuse(): never {
    return this.#contents.refuse()
  }

  ask(question: Condition['question']): boolean {
    return this.#contents.ask(sourceOf(this.visible, this.holes), question)
  }

  /** The text with its characters changed, which `most` bounds the number of. */
  change(change: (text: string) => string, most: number): TemplateText {
    const source = sourceOf(this.visible, this.holes)
    const hole: Hole = {
      at: 0,
      read: texts => change(source(texts)),
      most,
      contents: this.#contents,
    }
    return new TemplateText(new HiddenText('', [hole]), [], false)
  }
}

/** Reads the text with its holes filled. */
export function sourceOf(visible: string, holes: readonly Hole[]): TextSource {
  const [only] = holes
  if (visible === '' && only && holes.length === 1) return only.read
  return texts => {
    let text = ''
    let from = 0
    for (const { at, read } of holes) {
      text += visible.slice(from, at) + read(texts)
      from = at
    }
    return text + visible.slice(from)
  }
}

/** A text and the ranges of it that are foreign. */
export interface MarkedSourceText {
  readonly text: string
  readonly foreign: readonly (readonly [number, number])[]
}

/** Reads the text with its holes filled; all that fills them is foreign. */
export function markedSourceOf(
  { text: visible, foreign }: MarkedSourceText,
  holes: readonly Hole[],
): (texts: readonly string[]) => MarkedSourceText {
  return texts => {
    const ranges: [number, number][] = []
    let text = ''
    let from = 0
    const show = (to: number): void => {
      for (const [start, end] of foreign) {
        const [first, last] = [Math.max(start, from), Math.min(end, to)]
        if (first < last) ranges.push([first - from + text.length, last - from + text.length])
      }
      text += visible.slice(from, to)
      from = to
    }
    for (const { at, read } of holes) {
      show(at)
      const filling = read(texts)
      if (filling !== '') ranges.push([text.length, text.length + filling.length])
      text += filling
    }
    show(visible.length)
    return { text, foreign: ranges }
  }
}

/** The hole, moved into a longer text in which its own text begins at `start`. */
export function moveHole({ at, read, most, contents }: Hole, start: number): Hole {
  return { at: at + start, read, most, contents }
}
