import type { Cuts, IdBuffer } from '../buffers.ts';
import type { Vocabulary } from '../vocabulary.ts';
import type { Merges } from './merges.ts';
export interface BytePairOptions {
    readonly vocabulary: Vocabulary;
    readonly merges: Merges;
    /** Whether a piece that is a token as a whole is that token, whatever the merges make of it. */
    readonly ignoreMerges: boolean;
    /** Whether plain text must never become this id, even if `ignoreMerges` finds it. */
    isForbidden(id: number): boolean;
}
/** Byte pair encoding over UTF-8, piece by piece, with a cache of the ids of earlier pieces. */
export declare class BytePairs {
    #private;
    /** Whatever is encoded is added to `ids`. */
    constructor(options: BytePairOptions, ids: IdBuffer);
    /** Encodes pieces of UTF-16 units, one behind the other. */
    encodeAll(units: Uint16Array, pieces: Cuts): void;
    /** Encodes the UTF-16 units from `start` to `end`, which must be well formed. */
    encode(units: Uint16Array, start: number, end: number): void;
}
