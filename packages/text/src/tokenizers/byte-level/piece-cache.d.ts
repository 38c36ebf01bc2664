import type { IdBuffer } from '../buffers.ts';
/** Pieces longer than this are not remembered: they hardly ever come back. */
export declare const LONGEST_CACHED = 40;
/** Remembers the ids of pieces of text, in typed arrays: no string is cut, no object is made. */
export declare class PieceCache {
    #private;
    /** The place of a piece, or 0; what was not found can then be given to `remember`. */
    find(units: Uint16Array, start: number, end: number): number;
    /** Adds the ids of a piece that was found. */
    addTo(ids: IdBuffer, place: number): void;
    /** Stores the piece that the last `find` did not find; its ids are the newest `count`. */
    remember(units: Uint16Array, ids: IdBuffer, count: number): void;
}
