import { HiddenText, type Hole } from './hidden.ts';
import { TemplateText } from './template-text.ts';
import type { Text, Value } from './value.ts';
/** The characters of a text. */
export declare const plain: (text: Text) => string;
/** The hidden part of a text, if it has one. */
export declare const hiddenOf: (text: Text) => HiddenText | undefined;
/** How many UTF-16 units a text has; of a hidden one, how many it can have at most. */
export declare const sizeOf: (text: Text) => number;
/** Asks something about a text, which a hidden one answers as well. */
export declare function askText(text: Text, question: (text: string) => boolean): boolean;
/** A hidden text with a change applied later; its length grows `growth` times at most. */
export declare function changeHidden(text: Text, change: (text: string) => string, growth?: number): TemplateText | undefined;
/** Whether a text is Markup. */
export declare const isMarkup: (value: Value) => boolean;
/** A text from its parts: a plain string if it is neither foreign nor Markup. */
export declare function makeText(text: string, foreign: readonly number[], markup: boolean): Text;
/** The text as Markup, its characters unchanged. */
export declare const toMarkup: (text: Text) => Text;
/** The text as a plain `str`, its origin kept. */
export declare const fromMarkup: (text: Text) => Text;
/** A text of which every character came from outside. */
export declare const foreignText: (text: string) => TemplateText;
/** The text with every character marked, if any of the sources has a marked one. */
export declare function markLike(text: string, ...sources: readonly (Text | undefined)[]): Text;
/** A part of a text, by UTF-16 offsets. */
export declare function sliceText(text: Text, start: number, end: number): Text;
/** A text that is being put together. */
export interface Written {
    text: string;
    /** Pairs of offsets of characters from outside, in order. */
    foreign: number[] | undefined;
    /** The places of hidden texts, in order. */
    holes: Hole[] | undefined;
}
/** Nothing yet. */
export declare const emptyText: () => Written;
/** Adds a text with all that is known of its characters; hidden ones leave a hole. */
export declare function appendText(written: Written, part: Text): void;
/** What was put together, as a plain `str`. */
export declare function writtenText({ text, foreign, holes }: Written): Text;
/** Texts one after the other, as a plain `str`. */
export declare function joinTexts(parts: readonly Text[]): Text;
/**
 * Changes the characters of a text. Foreign characters are tracked run by run if changing the runs
 * gives the same as changing the whole; otherwise the whole result counts as foreign.
 */
export declare function mapText(text: Text, change: (text: string) => string): Text;
/** Whether all characters are one UTF-16 unit, so that offsets count characters. */
export declare const isNarrow: (text: string) => boolean;
/** The number of code points. */
export declare function countCharacters(text: string): number;
/** The UTF-16 offsets at which characters begin, with the length at the end. */
export declare function characterOffsets(text: string): number[];
/** The characters of a text, each as a text. */
export declare function characters(text: Text): Text[];
