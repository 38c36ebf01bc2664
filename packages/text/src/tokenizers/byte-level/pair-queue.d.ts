/**
 * Pairs of symbols by rank, the lowest first, and of equal ranks the leftmost first. A long text has
 * many pairs but few ranks at a time, and their positions mostly come in order: a list for each rank
 * beats one heap of all pairs by far.
 */
export declare class PairQueue {
    #private;
    /** The pair that `next` has moved to. */
    rank: number;
    position: number;
    add(rank: number, position: number): void;
    /** Takes the next pair out; false when none is left. */
    next(): boolean;
}
