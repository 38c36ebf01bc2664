import type { Text } from '../value.ts';
/** Escapes a text for HTML, unless it is Markup already; the result is Markup. */
export declare const escapeHtml: (text: Text) => Text;
/** Escapes a text for HTML even if it is Markup. */
export declare const forceEscape: (text: Text) => Text;
