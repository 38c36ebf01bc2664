import type { Vocabulary } from '../vocabulary.ts';
import { Borders } from './borders.ts';
/** Which pairs of symbols join to which symbol, the lowest rank first. */
export declare class Merges {
    #private;
    readonly borders: Borders;
    /** Makes room for `count` merges of symbols below `size`. */
    constructor(count: number, size: number);
    /** By ascending rank. A pair that is set twice counts where it was set last, as in the reference. */
    set(rank: number, [left, right, result]: readonly [number, number, number]): void;
    /** The symbol that a merge makes. Most vocabularies number them by rank, which needs no memory access. */
    resultOf(rank: number): number;
    /** The rank of a pair, or `NO_RANK`. */
    rank(left: number, right: number): number;
}
/**
 * Reads the merges of a BPE model, written as `"a b"` or as `["a", "b"]`. The second of a pair begins
 * with so many units that are dropped where the two are joined: `##` of BERT's kind.
 */
export declare function openMerges(value: unknown, vocabulary: Vocabulary, dropped?: number): Merges;
