import { type Part } from './syntax.ts';
/**
 * Reads an expression with the flag `u` or `v` whose syntax is known to be right. Undefined if it
 * contains back-references, which cannot be matched in linear time, or syntax too rare to support.
 */
export declare function parsePattern({ source, flags }: RegExp): Part | undefined;
