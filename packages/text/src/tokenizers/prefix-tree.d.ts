/** No node, or no value. */
export declare const NOTHING = -1;
/** Texts with numbers, found by their beginnings. */
export declare class PrefixTree {
    #private;
    constructor(entries: readonly (readonly [string, number])[]);
    /** The node behind a unit, or `NOTHING`; the tree begins at node 0. */
    next(node: number, unit: number): number;
    /** The number of the text that ends at a node, or `NOTHING`. */
    valueAt(node: number): number;
}
