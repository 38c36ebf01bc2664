import { PythonText } from '../../python/value.ts'
import type { Text, Value } from './value.ts'

/** The characters of a text. */
export const plain = (text: Text): string => (typeof text === 'string' ? text : text.text)

/** Whether a text is Markup. */
export const isMarkup = (value: Value): boolean => value instanceof PythonText && value.markup

/** A text from its parts: a plain string where there is nothing more to know. */
export function makeText(text: string, foreign: readonly number[], markup: boolean): Text {
  return foreign.length === 0 && !markup ? text : new PythonText(text, foreign, markup)
}

/** The text as Markup, its characters unchanged. */
export const toMarkup = (text: Text): Text =>
  typeof text === 'string'
    ? new PythonText(text, [], true)
    : new PythonText(text.text, text.foreign, true)

/** The text as a plain `str`, its origin kept. */
export const fromMarkup = (text: Text): Text =>
  typeof text === 'string' || !text.markup ? text : makeText(text.text, text.foreign, false)

/** A text of which every character came from outside. */
export const foreignText = (text: string): PythonText =>
  new PythonText(text, text === '' ? [] : [0, text.length], false)

/** The text with every character marked, if any of the sources has a marked one. */
export function markLike(text: string, ...sources: readonly (Text | undefined)[]): Text {
  return sources.some(source => source instanceof PythonText && source.foreign.length > 0)
    ? foreignText(text)
    : text
}

/** A part of a text, by UTF-16 offsets. */
export function sliceText(text: Text, start: number, end: number): Text {
  if (typeof text === 'string') return text.slice(start, end)
  const foreign: number[] = []
  for (let index = 0; index < text.foreign.length; index += 2) {
    const from = Math.max(start, text.foreign[index] as number)
    const to = Math.min(end, text.foreign[index + 1] as number)
    if (from < to) foreign.push(from - start, to - start)
  }
  return makeText(text.text.slice(start, end), foreign, text.markup)
}

/** Texts one after the other, as a plain `str`. */
export function joinTexts(parts: readonly Text[]): Text {
  let text = ''
  let foreign: number[] | undefined
  for (const part of parts) {
    if (typeof part === 'string') {
      text += part
      continue
    }
    if (part.foreign.length > 0) {
      foreign ??= []
      for (const offset of part.foreign) foreign.push(text.length + offset)
    }
    text += part.text
  }
  return foreign ? new PythonText(text, foreign, false) : text
}

/** The runs of a text that are wholly from outside or wholly not. */
function pieces(text: PythonText): PythonText[] {
  const cuts = [0, ...text.foreign, text.text.length]
  const parts: PythonText[] = []
  for (let index = 0; index + 1 < cuts.length; index++) {
    const [start, end] = [cuts[index] as number, cuts[index + 1] as number]
    if (start === end) continue
    const part = text.text.slice(start, end)
    parts.push(new PythonText(part, index % 2 === 1 ? [0, part.length] : [], false))
  }
  return parts
}

/**
 * Changes the characters of a text. What came from outside is followed run by run where the change
 * of the whole is the change of its runs; otherwise all of the result counts as from outside.
 */
export function mapText(text: Text, change: (text: string) => string): Text {
  if (typeof text === 'string') return change(text)
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

const SURROGATE = /[\ud800-\udfff]/

/** Whether all characters are one UTF-16 unit, so that offsets count characters. */
export const isNarrow = (text: string): boolean => !SURROGATE.test(text)

/** The number of code points. */
export function countCharacters(text: string): number {
  if (isNarrow(text)) return text.length
  let count = 0
  for (const _ of text) count++
  return count
}

/** The UTF-16 offsets at which characters begin, with the length at the end. */
export function characterOffsets(text: string): number[] {
  const offsets: number[] = []
  let offset = 0
  for (const character of text) {
    offsets.push(offset)
    offset += character.length
  }
  offsets.push(offset)
  return offsets
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
