import type { ReasoningFormat } from './formats/reasoning-formats.ts';
import type { ToolFormat } from './formats/tool-formats.ts';
/** The formats that a model writes, each undefined where nothing certain is known. */
export interface DetectedFormats {
    readonly tools: ToolFormat | undefined;
    readonly reasoning: ReasoningFormat | undefined;
}
/**
 * Which formats a chat template uses. Its source decides; if it offers tools without showing how to
 * call them, the vocabulary's control strings decide. Whether a prompt ends within a thinking block
 * is not decided here: rendering one shows it.
 */
export declare function detectFormats(template: string, controls: readonly string[]): DetectedFormats;
