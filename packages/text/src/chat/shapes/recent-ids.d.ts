import type { Tokenizer } from '../../tokenizers/tokenizer.ts';
import type { EncodePart } from './hole-encoder.ts';
/** Mixes a text into a number that equal texts share and others hardly ever do. */
export declare function mixText(number: number, text: string): number;
/**
 * Encodes texts, and keeps what the last ones were encoded as: the members of a group often make the same call, and
 * see the same answer.
 */
export declare function openRecentIds(tokenizer: Pick<Tokenizer, 'encodeParts'>): EncodePart;
