import { type Pattern } from '../patterns/pattern.ts';
/** A regular expression of tokenizer.json, matched in linear time. */
export declare function toPattern(pattern: string): Pattern;
/**
 * Translates a regular expression as tokenizer.json has it (Oniguruma's dialect, Unicode 16) to one
 * of JavaScript with the flags `gv` that matches the same text. What has no translation is refused.
 */
export declare function toRegExp(pattern: string): RegExp;
/** A regular expression that matches exactly this text. */
export declare function toLiteral(text: string): RegExp;
/** A pattern that matches exactly this text. */
export declare function literalPattern(text: string): Pattern;
/** A text with each match rewritten. */
export declare function replaceEach(text: string, pattern: Pick<Pattern, 'forEach'>, rewrite: (found: string) => string): string;
