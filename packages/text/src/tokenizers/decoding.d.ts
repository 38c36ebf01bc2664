import type { StreamDecoder } from './tokenizer.ts';
/** Ids to text; ids that `isSkipped` are left out. */
export interface Decoding {
    decode(ids: ArrayLike<number>, isSkipped: (id: number) => boolean): string;
    open(isSkipped: (id: number) => boolean): StreamDecoder;
    /** The bytes of a token, where a text is nothing but the bytes of its tokens. */
    bytesOf?(id: number): Uint8Array | undefined;
}
/** Text as the bytes of its tokens; `bytesOf` is asked once for each id. */
export declare function byteDecoding(bytesOf: (id: number) => Uint8Array | undefined): Decoding;
