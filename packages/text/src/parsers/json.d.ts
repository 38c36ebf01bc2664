import { type Reader, type Source } from './source.ts';
/** A valid JSON value as it is written. */
export interface JsonValue {
    readonly kind: 'value';
    readonly text: string;
    /** Where its keys and values, or its items, begin and end in the text. */
    readonly edges: readonly number[];
}
/** A JSON value as it stands in the text, or why there is none. */
export type JsonScan = JsonValue | {
    readonly kind: 'broken';
    readonly problem: string;
};
/**
 * Reads one JSON value strictly. Strings are passed over as strings, so markers in them are not
 * seen; the first character that cannot be JSON ends the reading.
 */
export declare function scanJson(source: Source): Reader<JsonScan>;
/** The value that a valid JSON text is. */
export declare function jsonValue(text: string): JsonValue;
/** The members of a JSON object, each value as it is written; of equal keys the last. */
export declare function jsonMembers({ text, edges }: JsonValue): Map<string, string>;
/** The items of a JSON array, each as it is written. */
export declare function jsonItems({ text, edges }: JsonValue): string[];
/** The text that a valid JSON string stands for. */
export declare function jsonText(string: string): string;
/** Whether the text is one JSON object and nothing else. */
export declare function isJsonObject(text: string): boolean;
/** Whether the text is one JSON value and nothing else. */
export declare function isJson(text: string): boolean;
