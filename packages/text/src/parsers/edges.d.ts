/**
 * Removes the layout from raw values: blanks and line breaks that a model writes between a tag and a
 * value, and that do not belong to the value.
 *
 * No grammar tells the two apart, so all values of one call are looked at together. Layout is the
 * same around each of them; a value's own edge is not. Where all are the same, and no number, flag
 * or object among them (whose edges can only be layout) settles it, an edge that text often has of
 * itself stays: a line break or an indentation on one side, or blanks around a lone line.
 */
export declare function withoutLayout(values: readonly {
    raw: string;
    isText: boolean;
}[]): string[];
/** Removes one line break from each side, for formats that put values on lines of their own. */
export declare function withoutLines(raw: string): string;
