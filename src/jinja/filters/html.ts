import { fromMarkup, isMarkup, mapText, toMarkup } from '../text.ts'
import type { Text } from '../value.ts'

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&#39;',
  '"': '&#34;',
}

const SPECIAL = /[&<>'"]/g

const escapeCharacters = (text: string): string =>
  text.replace(SPECIAL, character => ENTITIES[character] as string)

/** Escapes a text for HTML, unless it is Markup already; the result is Markup. */
export const escapeHtml = (text: Text): Text =>
  isMarkup(text) ? text : toMarkup(mapText(text, escapeCharacters))

/** Escapes a text for HTML even if it is Markup. */
export const forceEscape = (text: Text): Text =>
  toMarkup(mapText(fromMarkup(text), escapeCharacters))
