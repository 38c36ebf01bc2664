/** The rank of a pair that no merge joins; larger than every real one, and six bits short of a full number. */
export declare const NO_RANK = 33554431;
/** At which rank a part of a character joins a neighbour that begins or ends with a byte. */
export interface Meeting {
    readonly symbol: number;
    readonly byte: number;
    readonly rank: number;
}
/** Two tokens, as the vocabulary writes them. */
export type Pair = readonly [string, string];
/** A merge of two symbols. */
interface Merge {
    readonly rank: number;
    readonly left: number;
    readonly right: number;
}
/** What merges join, told by the bytes where the two symbols meet. */
export declare class Borders {
    #private;
    /** Parts that begin a character and lack its end, with what stands before them. */
    readonly before: Meeting[];
    /** Parts that end a character and lack its beginning, with what stands behind them. */
    readonly after: Meeting[];
    /** For symbols that are one character outside ASCII: the lowest rank at which a merge uses them. */
    readonly firstUse: Int32Array;
    /** Symbols are below `size`. */
    constructor(size: number);
    /**
     * Whether some merge joins a symbol that ends in the one byte with one that begins with the other. Where none
     * does, what stands on both sides can be encoded apart.
     */
    canJoin(last: number, first: number): boolean;
    /** Takes note of a merge. Tokens with letters outside the alphabet of bytes are never made of bytes. */
    add([before, after]: Pair, { rank, left, right }: Merge): void;
}
export {};
