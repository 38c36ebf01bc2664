import type { Run } from '../run.ts';
/** How text is wrapped, as Python's `textwrap.wrap` names it. */
export interface WrapOptions {
    readonly width: number;
    readonly breakLongWords: boolean;
    readonly breakOnHyphens: boolean;
    readonly lineBreak: string;
}
/** Wraps every line of a text to a width in characters. */
export declare function wrapText(run: Run, text: string, options: WrapOptions): string;
