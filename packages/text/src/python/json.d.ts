import { PythonError } from './error.ts';
import type { PythonValue } from './value.ts';
/** Text that is not JSON; `offset` counts UTF-16 units, line and column count from one. */
export declare class JsonError extends PythonError {
    readonly offset: number;
    readonly line: number;
    readonly column: number;
    constructor(problem: string, text: string, offset: number);
}
/**
 * Python's `json.loads`: ints and floats stay apart, long ints keep every digit, `NaN` and
 * `Infinity` are read, the last of equal keys wins.
 */
export declare function parseJson(text: string): PythonValue;
/** The options of Python's `json.dumps`, under their JavaScript names. */
export interface DumpOptions {
    /** @default true */
    readonly ensureAscii?: boolean;
    /** A count of spaces, or the text of one level. Without it all is on one line. */
    readonly indent?: number | string | null;
    /** Between items, and between key and value. @default [', ', ': '], with indent [',', ': '] */
    readonly separators?: readonly [string, string] | null;
    /** @default false */
    readonly sortKeys?: boolean;
    /** Characters after which writing stops with an error. @default none */
    readonly maximum?: number;
}
/** Python's `json.dumps`, to the byte. */
export declare function dumps(value: PythonValue, options?: DumpOptions): string;
