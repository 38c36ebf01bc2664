import type { ToolDefinition } from '../message.ts';
import type { Blocks, StageReader } from './blocks.ts';
/** What a format may look at: the tools that were offered, and the vocabulary's control strings. */
export interface FormatContext {
    readonly schemas: readonly ToolDefinition[];
    readonly controls: readonly string[] | undefined;
}
/** How calls are written: blocks in text, or a whole output of its own kind. */
export type ToolReading = {
    readonly kind: 'blocks';
    readonly blocks: (context: FormatContext) => Blocks;
} | {
    readonly kind: 'reader';
    readonly reader: StageReader;
};
/** A format of blocks in text. */
export declare const blocks: (make: (context: FormatContext) => Blocks) => ToolReading;
/** The part that a vocabulary adds to Hunyuan's control strings, such as `:opensource`. */
export declare function hunyuanSuffix(controls: readonly string[] | undefined): string;
