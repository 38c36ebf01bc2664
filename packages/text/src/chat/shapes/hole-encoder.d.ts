import { type Hole, type MarkedSourceText } from '../../jinja/hidden.ts';
import type { MarkedText, Tokenizer } from '../../tokenizers/tokenizer.ts';
/** Encodes a text whose holes are filled from these texts. */
export type HoleEncoder = (texts: readonly string[]) => Int32Array;
/** Encodes a part of a text; the first one may be encoded in another way than all others. */
export type EncodePart = (part: MarkedText, isFirst: boolean) => MarkedText | Int32Array;
/** A text with holes. */
export interface Outline extends MarkedSourceText {
    readonly holes: readonly Hole[];
}
/**
 * Builds the encoder of a text with holes. What lies between two control tokens is encoded by itself,
 * so only the spans with holes in them are encoded each time; what comes out is what the
 * tokenizer gives for the whole text, in which all that fills holes is foreign. What `encode` leaves as text,
 * the tokenizer encodes.
 */
export declare function openHoleEncoder(tokenizer: Tokenizer, outline: Outline, encode?: EncodePart): HoleEncoder;
