import { softStr } from './show.ts'
import { isMarkup, mapText, toMarkup } from './text.ts'
import type { Text, Value } from './value.ts'

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&#39;',
  '"': '&#34;',
}

const escapeCharacters = (text: string): string =>
  text.replace(/[&<>'"]/g, character => ENTITIES[character] as string)

/** Escapes a value for HTML, unless it is Markup already; the result is Markup. */
export function escapeHtml(value: Value): Text {
  const text = softStr(value)
  return isMarkup(text) ? text : toMarkup(mapText(text, escapeCharacters))
}

/** Escapes a value for HTML even if it is Markup. */
export const forceEscape = (value: Value): Text =>
  toMarkup(mapText(softStr(value), escapeCharacters))
