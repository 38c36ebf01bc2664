/** Ids that are still being gathered. */
export declare class IdBuffer {
    ids: Int32Array<ArrayBuffer>;
    length: number;
    push(id: number): void;
    /** Makes room, so that a loop may write into `ids` itself. */
    reserve(count: number): void;
    /** Adds ids that are known. */
    add(ids: Int32Array): void;
    /** What `fill` adds, as an array of its own. */
    gather(fill: () => void): Int32Array;
}
/**
 * Pieces of a text as `[start, end)` in UTF-16 units, in order. One list is reused for all texts: a
 * list per text would cost more than cutting a short one.
 */
export declare class Cuts {
    /** Starts at the even places, ends at the odd ones. */
    edges: Int32Array<ArrayBuffer>;
    count: number;
    /** Begins anew; what the list held is gone. */
    clear(): this;
    /** Empty pieces are left out: no model makes a token of them. */
    add(start: number, end: number): void;
    start(index: number): number;
    end(index: number): number;
}
/** The units of a text as an array, which loops read faster than a string; good until the next. */
export declare function toUnits(text: string): Uint16Array;
