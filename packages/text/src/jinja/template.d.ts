import type { TemplateInput } from './foreign.ts';
import type { Hole } from './hidden.ts';
import { type Limits, type Moment } from './run.ts';
/** Settings of one rendering. */
export interface RenderOptions {
    /** The time that `strftime_now` gives; without it, templates that call it fail. */
    readonly clock?: () => Date;
    /** Bounds on the work, so that no template can hang or exhaust the process. */
    readonly limits?: Partial<Limits>;
    /** Called again and again while a rendering takes long. */
    readonly onLong?: () => void;
}
/** A half-open range of UTF-16 offsets. */
export type TextRange = readonly [start: number, end: number];
/** What a template made of its variables. */
export interface Rendering {
    readonly text: string;
    /** The text made inside generation blocks, as transformers' assistant mask has it. */
    readonly generated: readonly TextRange[];
    /** The characters that came from values wrapped with `markForeign`, in order and joined. */
    readonly foreign: readonly TextRange[];
    /** The places of texts that were hidden from the rendering; offsets count them as empty. */
    readonly holes: readonly Hole[];
    /** The dates and times that the template wrote. */
    readonly moments: readonly Moment[];
}
/** The variables of a template: by name, as Python values or as plain JavaScript data. */
export type TemplateVariables = ReadonlyMap<string, TemplateInput> | Readonly<Record<string, unknown>>;
/** A compiled chat template. */
export interface Template {
    /** Renders with these variables; raises `TemplateError` where transformers would raise. */
    render(variables: TemplateVariables, options?: RenderOptions): Rendering;
}
/** Compiles a chat template in the dialect of transformers' environment. */
export declare function compileTemplate(source: string): Template;
