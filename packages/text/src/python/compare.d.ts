import type { PythonNumber } from './number.ts';
import type { PythonDict, PythonKey, PythonValue } from './value.ts';
/** The name of a value's Python class, as error messages print it. */
export declare function typeName(value: PythonValue): string;
/** The value as a number where Python counts it as one (`True` is 1), else `undefined`. */
export declare function asNumber(value: unknown): PythonNumber | undefined;
/** The characters of a `str` of either kind, else `undefined`. */
export declare function asText(value: unknown): string | undefined;
/** Python's `==`: numbers by value across types, containers item by item. */
export declare function equals(left: PythonValue, right: PythonValue): boolean;
/** The key of the dict that equals `key` as Python compares keys (`1`, `1.0` and `True` are one). */
export declare function findKey(dict: PythonDict, key: PythonKey): PythonKey | undefined;
/** Stores like `dict[key] = value`: an equal key keeps its place and its first spelling. */
export declare function storeItem(dict: PythonDict, key: PythonKey, value: PythonValue): void;
/** Narrows to what Python can hash, or raises its TypeError. */
export declare function requireHashable(value: PythonValue): PythonKey;
type Ordering = '<' | '<=' | '>' | '>=';
/** Python's ordering comparisons, with its TypeError where two types have no order. */
export declare function compare(operator: Ordering, left: PythonValue, right: PythonValue): boolean;
/** Orders two numbers. */
export declare function compareNumbers(operator: Ordering, left: number | bigint, right: number | bigint): boolean;
/** Orders texts by code points, as Python does; UTF-16 units order astral characters too low. */
export declare function compareText(left: string, right: string): number;
export {};
