import type { Reply, ToolDefinition } from '../message.ts';
import { type Markers, type OutputParser, type ReasoningFormat, type ToolFormat } from '../parsers/parser.ts';
import type { Tokenizer } from '../tokenizers/tokenizer.ts';
import type { Profile } from './calibration/calibration.ts';
/** How a model writes calls and reasoning; undefined where nobody knows. */
export interface Formats {
    readonly tools: ToolFormat | undefined;
    readonly reasoning: ReasoningFormat | undefined;
}
/** What reading replies needs. */
export interface ReplyContext {
    readonly formats: Formats;
    readonly profile: Profile;
    readonly tokenizer: Tokenizer;
    readonly stopIds: readonly number[];
    readonly markers: Markers;
}
/** Reads what a policy sampled in its `turn`-th turn. */
export type ReplyReader = (ids: Int32Array, tools: readonly ToolDefinition[], turn: number) => Reply;
/** Opens a reader of sampled turns; parsers are kept by the tools on offer, which type arguments. */
export declare function openReplies(context: ReplyContext): ReplyReader;
/** Opens the parsers of outputs, one for every list of tools. */
export declare function openParsers({ formats, profile, tokenizer, markers, }: ReplyContext): (tools: readonly ToolDefinition[]) => OutputParser;
