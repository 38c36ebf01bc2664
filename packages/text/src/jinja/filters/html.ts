import { mapText } from '../../python/text/text.ts'
import { fromMarkup, isMarkup, toMarkup } from '../text.ts'
import type { Text } from '../value.ts'

const SPECIAL = /[&<>'"]/

const escapeCharacters = (text: string): string =>
  SPECIAL.test(text)
    ? text
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;')
        .replaceAll("'", '&#39;')
        .replaceAll('"', '&#34;')
    : text

/** Escapes a text for HTML, unless it is Markup already; the result is Markup. */
export const escapeHtml = (text: Text): Text =>
  isMarkup(text) ? text : toMarkup(mapText(text, escapeCharacters))

/** Escapes a text for HTML even if it is Markup. */
export const forceEscape = (text: Text): Text =>
  toMarkup(mapText(fromMarkup(text), escapeCharacters))
