import type { IdBuffer } from './buffers.ts';
import type { Vocabulary } from './vocabulary.ts';
/** The tokens `<0x00>` to `<0xFF>` by byte; undefined where the vocabulary lacks one. */
export declare function byteTokens(vocabulary: Vocabulary): readonly (number | undefined)[];
/** How a vocabulary writes a byte: `<0x0A>`. */
export declare function byteToken(byte: number): string;
/** Adds the bytes of a text as tokens; false, and nothing is added, where one of them has none. */
export type ByteWriter = (text: string, ids: IdBuffer) => boolean;
/** Writes what a vocabulary does not know as bytes, if its model does that. */
export declare function byteWriter(vocabulary: Vocabulary, isWanted: boolean): ByteWriter;
/** A text that cannot be encoded. */
export declare function noToken(text: string): Error;
