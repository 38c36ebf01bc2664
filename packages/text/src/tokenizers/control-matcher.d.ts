import type { Marked } from './normalizers/rewriting.ts';
import type { ControlToken } from './tokenizer.ts';
/** A stretch of a text: a control token's, or with no control plain text between two. */
export interface ControlStretch {
    readonly start: number;
    readonly end: number;
    readonly control?: ControlToken;
}
/**
 * Cuts a text at its control strings. A string that touches a foreign character is not a control string,
 * except for runs of white space, which some vocabularies list as control tokens and which do no harm.
 */
export type ControlMatcher = (input: Marked) => readonly ControlStretch[];
/**
 * Builds the matcher of the given strings, each with its token: leftmost first, of those the
 * longest, then `singleWord`, `lstrip` and `rstrip` as the reference reads them.
 */
export declare function openControlMatcher(contents: readonly (readonly [string, ControlToken])[]): ControlMatcher;
