/** The character that stands for each byte, as a UTF-16 unit. */
export declare const unitOfByte: Uint16Array;
/** The byte that a unit stands for, or -1. */
export declare function byteOf(unit: number): number;
/** The bytes of a token: by the alphabet, or as UTF-8 where a character lies outside it. */
export declare function toBytes(token: string): Uint8Array;
/** Writes bytes as the alphabet does. */
export declare function fromBytes(bytes: Uint8Array): string;
