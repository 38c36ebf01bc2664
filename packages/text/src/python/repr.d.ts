import type { PythonValue } from './value.ts';
/** Renders what is not a plain Python value, or gives `undefined` to refuse it. */
export interface ReprOptions {
    readonly other?: (value: unknown) => string | undefined;
}
/** Python's `repr`. */
export declare function repr(value: PythonValue, options?: ReprOptions): string;
/** Python's `str`: strings as they are, everything else by its `repr`. */
export declare function str(value: PythonValue, options?: ReprOptions): string;
/** The `repr` of a float: the shortest digits that read back, an exponent below 1e-4 and from 1e16. */
export declare function formatFloat(value: number): string;
/** The `repr` of a string: single quotes unless only those occur inside, the unprintable escaped. */
export declare function reprString(text: string): string;
