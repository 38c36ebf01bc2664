/** Whether a UTF-16 unit is a space to Python's `str.isspace`. */
export declare function isSpace(unit: number): boolean;
/** Whether Python's `splitlines` ends a line at this unit. */
export declare const isLineEnd: (unit: number) => boolean;
/** A character in title case. */
export declare function toTitle(character: string): string;
/** Every word with a capital and small letters behind it, a word being a run of cased letters. */
export declare function titleCase(text: string): string;
/** The first character in title case, the rest in small letters. */
export declare function capitalize(text: string): string;
/** Small letters become capitals and capitals small. */
export declare const swapCase: (text: string) => string;
/** Text for comparison without case. */
export declare const caseFold: (text: string) => string;
/** Whether the text has letters with case, all of them small. */
export declare const isLower: (text: string) => boolean;
/** Whether the text has letters with case, all of them capital. */
export declare const isUpper: (text: string) => boolean;
/** Whether every word of the text begins with its only capital. */
export declare function isTitle(text: string): boolean;
/** Python's questions about all characters of a text, by the name of their method. */
export declare const QUESTIONS: ReadonlyMap<string, (text: string) => boolean>;
