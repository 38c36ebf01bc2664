import type { AssistantMessage, Message, ToolDefinition, ToolMessage, UserMessage } from '../../message.ts';
/** The last word of a synthetic turn that only speaks. */
export declare const contentMark = "qzprobesaid";
/** The last argument of the call by which the end of a synthetic turn is found. */
export declare const argumentMark = "qzprobeargued";
/** What a synthetic turn thinks. */
export declare const thoughtMark = "qzprobethought";
/** The id of the last call of a synthetic turn; nine letters and digits, as the strictest want. */
export declare const lastProbeId = "qzprobe00";
/** A probing tool, offered where a template must be shown one. */
export declare const probeTool: ToolDefinition;
/** The question that opens a synthetic conversation. */
export declare const asked: UserMessage & {
    readonly content: string;
};
/** What a user says next in a synthetic conversation. */
export declare const again: UserMessage & {
    readonly content: string;
};
/** A turn that thinks and speaks. */
export declare const spokenTurn: AssistantMessage;
/** How a call is answered in a synthetic conversation: under which id, and by which tool. */
export interface ProbeCall {
    readonly id?: string;
    readonly name?: string;
}
/** Which part of a calling turn is written last, so that its end can be found. */
export type CallMark = 'last' | 'first' | 'content';
/** A turn that thinks and calls; the call (or the words) that `mark` says is written last is marked. */
export declare function callingTurn(calls: readonly ProbeCall[], mark?: CallMark): AssistantMessage;
/** A turn without its thinking. */
export declare function withoutThought({ reasoning_content: _, ...turn }: AssistantMessage): AssistantMessage;
/** The `index`-th of several results, counted from the last one down. */
export declare function probeResult(index?: number): ToolMessage & {
    readonly content: string;
};
/** The calls that results answer. */
export declare function callsOf(results: readonly ToolMessage[]): readonly ProbeCall[];
/** Renders synthetic conversations; a template that refuses one gives its error. */
export interface Probe {
    text(messages: readonly Message[], options?: ProbeOptions): string | Error;
    /** The control strings of the vocabulary, white space left out. */
    readonly controls: readonly string[];
}
/** What a synthetic rendering is asked for. */
export interface ProbeOptions {
    /** Whether it ends where a policy continues. @default false */
    readonly opens?: boolean;
    /** Whether the probing tool is offered. @default false */
    readonly tools?: boolean;
}
/** What follows the first occurrence of a word. */
export declare function after(text: string | Error, mark: string): string | undefined;
/** What two texts begin with. */
export declare function commonPrefix(a: string, b: string): string;
/** What two texts end with. */
export declare function commonSuffix(a: string, b: string): string;
/** How often a string occurs in a text. */
export declare function countOf(text: string, string: string): number;
