import type { Method } from '../signature.ts';
import type { Text } from '../value.ts';
/** Python's `int(text, base)`, or `undefined` where it raises. */
export declare function parseInteger(value: Text, base: number): number | bigint | undefined;
/** Python's `float(text)`, or `undefined` where it raises. */
export declare function parseFloatText(value: Text): number | undefined;
/** The filters on numbers. */
export declare const NUMBER_FILTERS: readonly (readonly [string, Method])[];
