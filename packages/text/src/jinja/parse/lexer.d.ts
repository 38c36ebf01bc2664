import { PythonFloat } from '../../python/value.ts';
/** One token of a template; `at` is its offset in the normalized source. */
export type Token = {
    readonly kind: 'data';
    readonly at: number;
    readonly value: string;
} | {
    readonly kind: 'name';
    readonly at: number;
    readonly value: string;
} | {
    readonly kind: 'string';
    readonly at: number;
    readonly value: string;
} | {
    readonly kind: 'number';
    readonly at: number;
    readonly value: number | bigint | PythonFloat;
} | {
    readonly kind: 'operator';
    readonly at: number;
    readonly value: string;
} | {
    readonly kind: 'block-begin' | 'block-end';
    readonly at: number;
    readonly value: string;
} | {
    readonly kind: 'print-begin' | 'print-end';
    readonly at: number;
    readonly value: string;
} | {
    readonly kind: 'end';
    readonly at: number;
    readonly value: string;
};
/** What Python's `str.isspace` and the `\s` of its regular expressions accept. */
export declare const PYTHON_SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
/** A template source as Jinja reads it: line feeds only, one trailing line feed dropped. */
export declare function normalizeSource(source: string): string;
/** Cuts a normalized source into tokens, with `trim_blocks` and `lstrip_blocks` on. */
export declare function tokenize(source: string): Token[];
