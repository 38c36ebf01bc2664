import type { Pattern } from '../../patterns/pattern.ts';
/** A text, and which of its UTF-16 units are foreign; without `foreign`, none is. */
export interface Marked {
    readonly text: string;
    readonly foreign?: Uint8Array | undefined;
}
/** Rewrites a text before it is cut. What is made of foreign characters is foreign. */
export type Normalizer = (input: Marked) => Marked;
/** Rewrites each match; what is new in it is foreign if any of what it replaces was. */
export declare function rewriteEach(pattern: Pick<Pattern, 'forEach'>, rewrite: (found: string) => string): Normalizer;
