import type { StageReader } from './blocks.ts';
/** Thinking between two tags. */
export interface Thinking {
    readonly open: string;
    readonly close: string;
    /** Whether the output begins within a block. */
    readonly inside: boolean;
    /** Markers of calls that end a block which nothing else closes. */
    readonly calls?: readonly string[];
    /** Markers that end a block wherever they stand. */
    readonly ends?: readonly string[];
    /** Whether a closing tag at the very beginning is dropped. */
    readonly strayClose?: boolean;
}
/** Reads a thinking block, opening tags included, up to and with its closing tag. */
export declare function thinkingReader(thinking: Thinking): StageReader;
