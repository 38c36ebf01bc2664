import type { Merges } from './merges.ts';
/** Knows which characters can be symbols from the beginning. */
export declare class Characters {
    #private;
    /** The vocabulary must have a symbol for every byte. */
    constructor(idOfByte: Int32Array, merges: Merges);
    /** Writes symbols for well-formed units, a character or a byte each, and answers how many. */
    toSymbols(units: Uint16Array, start: number, end: number, symbols: Int32Array): number;
}
