import type { Method } from '../signature.ts';
import type { Value } from '../value.ts';
/** An argument that must be a string. */
export declare function requireText(value: Value | undefined, what: string): string;
/** An argument that must be an int, or its default. */
export declare function requireInt(value: Value | undefined, fallback: number): number;
type Ranges = [number, number][];
/** Where the lines of a text are, with or without what ends them. */
export declare function lineRanges(text: string, keepEnds: boolean): Ranges;
/** The methods of `str` that cut it into parts. */
export declare const SPLIT_METHODS: readonly (readonly [string, Method])[];
export {};
