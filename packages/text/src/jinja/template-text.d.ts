import { PythonText } from '../python/value.ts';
/** Characters that a rendering may not see; what it writes without seeing them holds for any others. */
export interface Hidden {
    /** Raises, because somebody tried to read them. */
    refuse(): never;
}
/** A text as templates handle it: it knows which characters came from outside, and may be hidden. */
export declare class TemplateText extends PythonText {
    readonly content: string | Hidden;
    /** Pairs of UTF-16 offsets, in order: the characters that came from outside. */
    readonly foreign: readonly number[];
    readonly markup: boolean;
    constructor(content: string | Hidden, foreign: readonly number[], markup: boolean);
    /** The characters; hidden ones raise. */
    get text(): string;
}
