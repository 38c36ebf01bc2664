import { characterOffsets, isNarrow, plain, sliceText } from '../python/text/text.ts'
import type { Text } from '../python/value.ts'
import { HiddenText, type Hole, moveHole } from './hidden.ts'
import { TemplateText } from './template-text.ts'
import type { Value } from './value.ts'

/** The hidden part of a text, if it has one. */
export const hiddenOf = (text: Text): HiddenText | undefined =>
  text instanceof TemplateText && text.content instanceof HiddenText ? text.content : undefined

/** How many UTF-16 units a text has; of a hidden one, how many it can have at most. */
export const mostOf = (text: TemplateText): number => hiddenOf(text)?.most ?? text.text.length

/** Asks something about a text, which a hidden one answers as well. */
export function askRich(text: TemplateText, question: (text: string) => boolean): boolean {
  const hidden = hiddenOf(text)
  return hidden ? hidden.ask(question) : question(text.text)
}

/** A hidden text with a change applied later; its length grows `growth` times at most. */
export function changeHidden(
  text: Text,
  change: (text: string) => string,
  growth = 1,
): TemplateText | undefined {
  const hidden = hiddenOf(text)
  // Which changed characters are foreign cannot be known before the text is.
  if (hidden && (text as TemplateText).foreign.length > 0) hidden.refuse()
  return hidden?.change(change, growth * hidden.most)
}

/** The pairs of offsets of the characters that came from outside. */
export const foreignOf = (text: Text): readonly number[] =>
  text instanceof TemplateText ? text.foreign : []

/** Whether a text is Markup. */
export const isMarkup = (value: Value): boolean => value instanceof TemplateText && value.markup

/** A text from its parts: a plain string if it is neither foreign nor Markup. */
export function makeText(text: string, foreign: readonly number[], markup: boolean): Text {
  return foreign.length === 0 && !markup ? text : new TemplateText(text, foreign, markup)
}

/** The text as Markup, its characters unchanged. */
export const toMarkup = (text: Text): Text => new TemplateText(plain(text), foreignOf(text), true)

/** The text as a plain `str`, its origin kept. */
export const fromMarkup = (text: Text): Text =>
  typeof text === 'string' || !text.markup ? text : makeText(text.text, foreignOf(text), false)

/** A text of which every character came from outside. */
export const foreignText = (text: string): TemplateText =>
  new TemplateText(text, text === '' ? [] : [0, text.length], false)

/** The text with every character marked, if any of the sources has a marked one. */
export function markLike(text: string, ...sources: readonly (Text | undefined)[]): Text {
  return sources.some(source => source !== undefined && foreignOf(source).length > 0)
    ? foreignText(text)
    : text
}

/** A part of a text, by UTF-16 offsets. */
export function sliceRich(text: TemplateText, start: number, end: number): Text {
  const foreign: number[] = []
  for (let index = 0; index < text.foreign.length; index += 2) {
    const from = Math.max(start, text.foreign[index] as number)
    const to = Math.min(end, text.foreign[index + 1] as number)
    if (from < to) foreign.push(from - start, to - start)
  }
  return makeText(text.text.slice(start, end), foreign, text.markup)
}

/** A text that is being put together. */
export interface Written {
  text: string
  /** Pairs of offsets of characters from outside, in order. */
  foreign: number[] | undefined
  /** The places of hidden texts, in order. */
  holes: Hole[] | undefined
}

/** Nothing yet. */
export const emptyText = (): Written => ({ text: '', foreign: undefined, holes: undefined })

/** Adds a text with all that is known of its characters; hidden ones leave a hole. */
export function appendText(written: Written, part: Text): void {
  if (typeof part === 'string') {
    written.text += part
    return
  }
  const start = written.text.length
  for (const offset of foreignOf(part)) {
    written.foreign ??= []
    written.foreign.push(start + offset)
  }
  const hidden = hiddenOf(part)
  if (hidden) {
    written.holes ??= []
    for (const hole of hidden.holes) written.holes.push(moveHole(hole, start))
  }
  written.text += hidden ? hidden.visible : part.text
}

/** What was put together, as a plain `str`. */
export function writtenText({ text, foreign, holes }: Written): Text {
  if (holes) return new TemplateText(new HiddenText(text, holes), foreign ?? [], false)
  return foreign ? new TemplateText(text, foreign, false) : text
}

/** Texts one after the other, as a plain `str`. */
export function joinRich(parts: readonly Text[]): Text {
  const written = emptyText()
  for (const part of parts) appendText(written, part)
  return writtenText(written)
}

/** The runs of a text that are wholly from outside or wholly not. */
function pieces(text: TemplateText): TemplateText[] {
  const cuts = [0, ...text.foreign, text.text.length]
  const parts: TemplateText[] = []
  for (let index = 0; index + 1 < cuts.length; index++) {
    const [start, end] = [cuts[index] as number, cuts[index + 1] as number]
    if (start === end) continue
    const part = text.text.slice(start, end)
    parts.push(new TemplateText(part, index % 2 === 1 ? [0, part.length] : [], false))
  }
  return parts
}

/**
 * Changes the characters of a text. Foreign characters are tracked run by run if changing the runs
 * gives the same as changing the whole; otherwise the whole result counts as foreign.
 */
export function mapRich(text: TemplateText, change: (text: string) => string): Text {
  const whole = change(text.text)
  if (text.foreign.length === 0) return makeText(whole, [], text.markup)
  const foreign: number[] = []
  let length = 0
  let joined = ''
  for (const part of pieces(text)) {
    const changed = change(part.text)
    if (part.foreign.length > 0) foreign.push(length, length + changed.length)
    length += changed.length
    joined += changed
  }
  const marks = joined === whole ? foreign : [0, whole.length]
  return makeText(whole, whole === '' ? [] : marks, text.markup)
}

/** The characters of a text, each as a text. */
export function characters(text: Text): Text[] {
  if (typeof text === 'string') return isNarrow(text) ? text.split('') : [...text]
  // walking Markup gives plain strings
  if (text.markup) return characters(fromMarkup(text))
  const offsets = characterOffsets(text.text)
  return offsets
    .slice(0, -1)
    .map((offset, index) => sliceText(text, offset, offsets[index + 1] ?? 0))
}
