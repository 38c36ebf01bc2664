import { PythonFloat } from './value.ts';
/** A number read from a text, or why there is none. */
export type NumberReading = {
    readonly value: number | bigint | PythonFloat;
    readonly end: number;
} | {
    readonly problem: string;
};
/** Reads an unsigned number of Python's grammar: radix prefixes, underscores, fractions, exponents. */
export declare function readNumberLiteral(text: string, offset: number): NumberReading;
