import { type Schema } from './schema.ts';
/** How a format reads raw text where the schema leaves it open. */
export interface ValueRule {
    /**
     * A parameter that the schema does not declare. Objects, lists, flags and null are read as such;
     * what looks like a number is `text`, or `json` in formats whose models mean numbers.
     */
    readonly undeclared: 'text' | 'json';
    /** A parameter that may be a string or something else: text, or the other type where it fits. */
    readonly union: 'text' | 'typed' | 'json';
    /**
     * What is removed from the ends of a value that is read as text although its schema does not declare
     * a string: all white space, line breaks, or nothing. @default nothing
     */
    readonly strips?: 'space' | 'lines';
    /** Whether values may be written as Python writes them, besides JSON. @default true */
    readonly literals?: boolean;
}
/** A raw value as JSON text, typed by its schema. */
export declare function toJsonValue(raw: string, schema: Schema, rule: ValueRule): string;
/** A Python literal as JSON text; undefined if it is none or JSON has no such value. */
export declare function fromPython(text: string): string | undefined;
