import { PythonFloat } from './value.ts';
/** A Python number of either type. */
export type PythonNumber = number | bigint | PythonFloat;
/** The value as a double; an `int` too large for one raises, as in Python. */
export declare function toDouble(value: PythonNumber): number;
type Operation = '+' | '-' | '*' | '/' | '//' | '%' | '**';
/** Python's arithmetic on numbers: ints stay exact, `//` and `%` round towards minus infinity. */
export declare function arithmetic(operation: Operation, left: PythonNumber, right: PythonNumber): PythonNumber;
/** The number with its sign turned. */
export declare function negate(value: PythonNumber): PythonNumber;
/** Python's `round(x, digits)` of a float: half to even on the exact binary value. */
export declare function roundFloat(value: number, digits: number): number;
/** Python's `round(x)` without digits: the nearest int, half to even. */
export declare function roundToInt(value: number): number | bigint;
/** The digits of a finite float with a fixed number of decimals, as `'%.2f'` writes them. */
export declare function toFixedExactly(value: number, decimals: number): string;
/** The digits and decimal exponent of a finite float, rounded half to even as `'%e'` rounds. */
export declare function toExponentialExactly(value: number, decimals: number): {
    readonly digits: string;
    readonly exponent: number;
};
export {};
