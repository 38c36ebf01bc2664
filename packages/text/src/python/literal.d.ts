import { PythonError } from './error.ts';
import type { PythonValue } from './value.ts';
/** Text that is not a Python literal, with the place where reading stopped. */
export declare class LiteralError extends PythonError {
    readonly offset: number;
    readonly line: number;
    readonly column: number;
    constructor(problem: string, text: string, offset: number);
}
/** Reads one whole literal, the language of Python's `ast.literal_eval` without bytes and complex. */
export declare function parseLiteral(text: string): PythonValue;
/** Reads the literal that begins at `offset` of a larger text, and returns where it ended. */
export declare function readLiteral(text: string, offset: number): {
    value: PythonValue;
    end: number;
};
