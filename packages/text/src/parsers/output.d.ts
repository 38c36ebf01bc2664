import { type StageReader } from './blocks.ts';
import type { OutputText, ParsedOutput, ParserOptions, StreamingParser } from './parser.ts';
/** Parses an output that is all there: no reader has to wait. */
export declare function parseOutput(reading: OutputReading, output: OutputText): ParsedOutput;
/** Parses an output as it arrives. */
export declare function openOutput(reading: OutputReading): StreamingParser;
/** How the outputs of a model are read. */
export interface OutputReading {
    /** They keep no state, so one list serves every output. */
    readonly readers: readonly StageReader[];
    readonly controls: readonly string[] | undefined;
}
/** The readers of a model's way of writing, in the order in which text passes them. */
export declare function readersOf(options: ParserOptions): readonly StageReader[];
