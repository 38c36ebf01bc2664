import { PythonText, type Text } from '../python/value.ts'
import { escapeHtml } from './filters/html.ts'
import {
  askRich,
  changeHidden,
  fromMarkup,
  joinRich,
  mapRich,
  mostOf,
  sliceRich,
  toMarkup,
} from './text.ts'

/** Characters that a rendering may not see; what it writes without seeing them holds for any others. */
export interface Hidden {
  /** Raises, because somebody tried to read them. */
  refuse(): never
}

/** A text as templates handle it: it knows which characters came from outside, and may be hidden. */
export class TemplateText extends PythonText {
  readonly content: string | Hidden
  /** Pairs of UTF-16 offsets, in order: the characters that came from outside. */
  readonly foreign: readonly number[]
  override readonly markup: boolean
  constructor(content: string | Hidden, foreign: readonly number[], markup: boolean) {
    super()
    this.content = content
    this.foreign = foreign
    this.markup = markup
  }

  /** The characters; hidden ones raise. */
  override get text(): string {
    return typeof this.content === 'string' ? this.content : this.content.refuse()
  }

  override get size(): number {
    return mostOf(this)
  }

  override slice(start: number, end: number): Text {
    return sliceRich(this, start, end)
  }

  override map(change: (text: string) => string): Text {
    return mapRich(this, change)
  }

  override later(change: (text: string) => string, growth: number): Text | undefined {
    return changeHidden(this, change, growth)
  }

  override ask(question: (text: string) => boolean): boolean {
    return askRich(this, question)
  }

  override join(parts: readonly Text[]): Text {
    return joinRich(parts)
  }

  override admit(other: Text): Text {
    return this.markup ? escapeHtml(other) : other
  }

  override like(other: Text): Text {
    return this.markup ? toMarkup(other) : fromMarkup(other)
  }
}
