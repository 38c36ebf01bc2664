import { type Written } from './text.ts';
import type { Text, Value } from './value.ts';
import type { Variables } from './variables.ts';
/** How much a rendering may do before it is stopped. */
export interface Limits {
    /** Units of work: about one per expression evaluated and per eight characters worked on. @default 25 million */
    readonly steps: number;
    /** Characters of the output, and of any one string on the way. @default 16 million */
    readonly characters: number;
    /** Seconds, for work that is slower than its count of steps; checked while working. @default 10 */
    readonly seconds: number;
}
/** Steps between two looks at the clock. */
export declare const portion = 1000000;
/** A moment as a template wrote it. */
export interface Moment {
    readonly format: string;
    readonly written: string;
}
/** The state of one rendering. */
export interface Run {
    readonly variables: Variables;
    readonly limits: Limits;
    readonly clock: (() => Date) | undefined;
    readonly onLong: (() => void) | undefined;
    /** The output of the template itself, under all buffers. */
    readonly root: Written;
    /** The offsets of text made inside generation blocks. */
    readonly generated: [number, number][];
    /** Values set at the top of the template, for the blocks in it. */
    readonly exports: Map<string, Value>;
    /** The dates and times that the template wrote. */
    readonly moments: Moment[];
    /** Where text goes: the top of the template, or the inside of a macro, call or set block. */
    output: Written;
    /** Steps left before the next look at the clock, and steps left after that. */
    steps: number;
    later: number;
    /** When the rendering is stopped. */
    readonly until: number;
    depth: number;
    /** The offset in the source of the statement at work, for error messages. */
    at: number;
}
/** Counts work. */
export declare function spend(run: Run, steps: number): void;
/**
 * Counts work on a value by its size, before anything walks over it. Short strings are free: what
 * works on them is paid by the expression it stands in.
 */
export declare function charge(run: Run, value: Value): void;
/** Counts work on a value by its size and that of everything inside it. */
export declare function chargeDeeply(run: Run, value: Value): void;
/** Counts the making of a text, and refuses one that is too long. */
export declare function spendText(run: Run, length: number): void;
/** Writes plain text. */
export declare function writeString(run: Run, text: string): void;
/** Writes text with what is known of its characters. */
export declare function writeText(run: Run, text: Text): void;
/** Collects what `work` writes instead of printing it. */
export declare function capture(run: Run, work: () => void): Text;
/** Counts a call that begins. */
export declare function goDeeper(run: Run): void;
/** Works one call deeper, and gives the position of the caller back afterwards. */
export declare function callDeeper<T>(run: Run, work: () => T): T;
