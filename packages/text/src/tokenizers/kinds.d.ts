/** What a code point is to the split patterns; each has exactly one of these bits. */
export declare const UPPER = 1;
export declare const LOWER = 2;
/** A letter without case, or a modifier letter. */
export declare const CASELESS = 4;
export declare const MARK = 8;
export declare const NUMBER = 16;
/** White space other than a line feed or a carriage return. */
export declare const SPACE = 32;
export declare const NEWLINE = 64;
export declare const OTHER = 128;
export declare const LETTER: number;
/**
 * The kind of every code point below 0x40000, built on first use. High surrogates are 0: their
 * kind is that of the pair, see `astralKind`.
 */
export declare function kindTable(): Uint8Array;
/** The kind of the surrogate pair that begins at `at`. */
export declare function astralKind(units: Uint16Array, at: number): number;
