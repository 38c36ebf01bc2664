import { type Condition, type Hole } from '../jinja/hidden.ts';
import type { Moment } from '../jinja/run.ts';
import { type Message, type ToolDefinition } from '../message.ts';
import type { Tokenizer } from '../tokenizers/tokenizer.ts';
import type { Dialect } from './calibration/dialect.ts';
import type { ModelFiles } from './model-folder.ts';
/** A rendered text, with the ranges of it that came from messages. */
export interface ChatText {
    readonly text: string;
    readonly foreign: readonly (readonly [number, number])[];
}
/** What one rendering is asked for. */
export interface ChatRequest {
    readonly messages: readonly Message[];
    readonly tools: readonly ToolDefinition[];
    /** Whether the text ends where the policy continues. */
    readonly opensTurn: boolean;
}
/** A rendered text, and the dates and times that the template wrote into it. */
export interface TimedText extends ChatText {
    readonly moments: readonly Moment[];
}
/** A text with holes for contents that were hidden from the template. */
export interface OutlineText extends TimedText {
    readonly holes: readonly Hole[];
}
/** The result of rendering with some contents hidden; it holds for contents that meet the conditions. */
export interface OutlineRendering {
    readonly conditions: readonly Condition[];
    /** The text for such contents if none contains a control string; undefined if the template must see them. */
    readonly outline: OutlineText | undefined;
}
/** Renders conversations as text, as transformers renders this template. */
export interface Chat {
    render(request: ChatRequest): TimedText;
    /**
     * Renders with the contents of the last `hidden` messages hidden, which must be texts of at most
     * `longestHidden` units.
     */
    renderOutline(request: ChatRequest, hidden: number): OutlineRendering;
    /** Whether a text spells a control string. */
    spellsControl(text: string): boolean;
    /** Whether a template would still write the same time. */
    isNow(moments: readonly Moment[]): boolean;
    /** The template in use, patches applied. */
    readonly source: string;
}
/** Longer contents are not hidden: for them rendering is the smaller part of the cost. */
export declare const longestHidden: number;
/** How a chat template is used. */
export interface ChatOptions {
    /** The template's source, patches applied. */
    readonly template: string;
    readonly toolTemplate?: string;
    readonly tokenizer: Tokenizer;
    readonly config: ModelFiles['config'];
    /** Values the template may ask for, such as `enable_thinking`. */
    readonly variables: Readonly<Record<string, unknown>>;
    /** The date that templates write. */
    readonly clock: () => Date;
}
/** Compiles a chat template; what it gives renders messages in the shape of a dialect. */
export declare function compileChat(options: ChatOptions): (dialect: Dialect) => Chat;
