import type { Program } from './program.ts';
/** A match: where it begins and where it ends. */
export type Span = readonly [start: number, end: number];
/** Thrown if a text is too long for a pattern. */
export declare class LongTextError extends Error {
    name: string;
}
/**
 * Finds the same matches as a backtracking engine, in linear time: a fork that failed at a place once will
 * always fail there, so each pair of fork and place is tried once. This is true because the patterns here
 * have no back-references.
 */
export declare class Matcher {
    #private;
    constructor(main: Program, text: string);
    /** The first match at or behind a place. */
    find(from: number): Span | undefined;
}
