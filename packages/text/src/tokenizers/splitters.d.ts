import { Cuts } from './buffers.ts';
import { type Fields } from './fields.ts';
/** A text in the two forms that splitting needs. */
export interface Source {
    readonly text: string;
    readonly units: Uint16Array;
}
/**
 * Cuts each piece of a text further. A piece never sees the text beyond its own ends. What it gives
 * is good until it is called again.
 */
export type Splitter = (source: Source, pieces: Cuts) => Cuts;
/** How a pre-tokenizer of tokenizer.json cuts, and what it does to the text besides. */
export interface PreTokenizer {
    readonly split: Splitter;
    /** Whether the bytes of the pieces, in GPT-2's alphabet, are what the model reads. */
    readonly isByteLevel: boolean;
    /** Whether a text that begins with no blank is given one. */
    readonly prefixesBlank: boolean;
}
/** Builds the pre-tokenizer, or throws `UnsupportedPartError` where it is not known here. */
export declare function openPreTokenizer(fields: Fields | undefined): PreTokenizer;
/** The steps of a pre-tokenizer, one behind the other. */
export declare function flatten(fields: Fields): readonly Fields[];
