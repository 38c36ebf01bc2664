import type { Vocabulary } from '../vocabulary.ts';
/** The tokens by their bytes, in typed arrays: no string is made of a piece to find out whether it is one. */
export declare class WholeTokens {
    #private;
    /** Leaves out tokens that are not wanted and such as are not written in the alphabet of bytes. */
    constructor(vocabulary: Vocabulary, isWanted: (id: number) => boolean);
    /** The id of the token that the first bytes are, or -1. */
    find(bytes: Uint8Array, length: number): number;
}
