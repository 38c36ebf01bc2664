import type { Merges } from './merges.ts';
/** The symbols of one piece; `ranks[i]` belongs to the pair of `symbols[i]` and `symbols[i + 1]`. */
export interface JoinWork {
    readonly symbols: Int32Array;
    readonly ranks: Int32Array;
}
/**
 * Byte pair encoding, in place: joins pairs until none can be, the lowest rank first and of equal
 * ranks the leftmost. Reads `count` symbols and answers how many are left.
 */
export declare function join(work: JoinWork, count: number, merges: Merges): number;
