/** Writes units as UTF-8 and answers the count of bytes. */
export declare function toUtf8(units: Uint16Array, { start, end }: {
    readonly start: number;
    readonly end: number;
}, bytes: Uint8Array): number;
/** The UTF-8 of a unit; half of a pair has none. */
export declare function bytesOf(unit: number): number[];
/** The first byte of the UTF-8 of a character that is, or begins with, this unit. */
export declare function firstByte(unit: number): number;
/** The last byte of the UTF-8 of a character that is, or ends with, this unit. */
export declare function lastByte(unit: number): number;
/** Whether a byte continues a character of UTF-8. */
export declare function isContinuation(byte: number): boolean;
export declare function isHighSurrogate(unit: number): boolean;
export declare function isLowSurrogate(unit: number): boolean;
