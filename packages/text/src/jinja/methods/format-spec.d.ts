import type { Run } from '../run.ts';
import type { Text, Value } from '../value.ts';
/** The first characters of a text, as many as given. */
export declare function limitText(text: Text, count: number | undefined): Text;
/** How a text is filled up to a width: `<` on the right, `>` on the left, `^` on both sides. */
export interface Padding {
    readonly width: number;
    readonly fill: string;
    readonly align: string;
}
/** Fills a text up to a width in characters. */
export declare function padText(run: Run, text: Text, padding: Padding): Text;
/** Python's `format(value, specification)`. */
export declare function formatValue(run: Run, value: Value, specification: string): Text;
