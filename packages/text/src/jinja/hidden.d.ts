import type { Hidden } from './template-text.ts';
import { TemplateText } from './template-text.ts';
/** Computes a text from the texts that were hidden from a rendering. */
export type TextSource = (texts: readonly string[]) => string;
/** Something that a rendering wanted to know about hidden texts, and the answer. */
export interface Condition {
    readonly read: TextSource;
    readonly question: (text: string) => boolean;
    readonly answer: boolean;
}
/** A place in a text where a hidden one belongs. */
export interface Hole {
    readonly at: number;
    readonly read: TextSource;
    /** How many UTF-16 units may come here. */
    readonly most: number;
    readonly contents: HiddenContents;
}
/** Raised when a rendering reads characters that are hidden from it. */
export declare class HiddenTextError extends Error {
    name: string;
    constructor();
}
/**
 * Hides texts from one rendering and remembers what it wanted to know about them. What it wrote
 * holds for all texts about which the same answers are true, because it has seen no others.
 */
export declare class HiddenContents {
    #private;
    readonly conditions: Condition[];
    constructor(texts: readonly string[]);
    /** Whether nothing was read so far; kept beside the error, which template code might swallow. */
    get isUnseen(): boolean;
    /** The `index`-th text as a template gets it, of at most so many units. */
    hide(index: number, most: number): TemplateText;
    /** Answers a question about what hidden texts say, and remembers it. */
    ask(read: TextSource, question: Condition['question']): boolean;
    /** Forgets the texts; what was written without them may be kept for long. */
    close(): void;
    /** Records that a text was read, and raises. */
    refuse(): never;
}
/** Text with holes in it, at least one. */
export declare class HiddenText implements Hidden {
    #private;
    /** The characters around the holes. */
    readonly visible: string;
    readonly holes: readonly Hole[];
    constructor(visible: string, holes: readonly Hole[]);
    get most(): number;
    refuse(): never;
    ask(question: Condition['question']): boolean;
    /** The text with its characters changed, which `most` bounds the number of. */
    change(change: (text: string) => string, most: number): TemplateText;
}
/** Reads the text with its holes filled. */
export declare function sourceOf(visible: string, holes: readonly Hole[]): TextSource;
/** A text and the ranges of it that are foreign. */
export interface MarkedSourceText {
    readonly text: string;
    readonly foreign: readonly (readonly [number, number])[];
}
/** Reads the text with its holes filled; all that fills them is foreign. */
export declare function markedSourceOf({ text: visible, foreign }: MarkedSourceText, holes: readonly Hole[]): (texts: readonly string[]) => MarkedSourceText;
/** The hole, moved into a longer text in which its own text begins at `start`. */
export declare function moveHole({ at, read, most, contents }: Hole, start: number): Hole;
