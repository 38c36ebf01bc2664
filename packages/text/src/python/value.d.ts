/**
 * A Python value. A JavaScript number without a fraction is an `int` (a `bigint` where it would lose
 * digits), every other number a `float`; `PythonFloat` tells `1.0` from `1`.
 */
export type PythonValue = null | boolean | number | bigint | PythonFloat | string | PythonTuple | PythonSet | readonly PythonValue[] | PythonDict;
/** What Python can hash among its plain values. */
export type PythonKey = null | boolean | number | bigint | PythonFloat | string | PythonTuple;
/** A `dict`. A Map, because objects of JavaScript move integer-like keys to the front. */
export type PythonDict = Map<PythonKey, PythonValue>;
/** A `float`, also where its value is whole. */
export declare class PythonFloat {
    readonly value: number;
    constructor(value: number);
}
/** A `tuple`; lists are arrays. */
export declare class PythonTuple<Item = PythonValue> {
    readonly items: readonly Item[];
    constructor(items: readonly Item[]);
}
/** A `str` that knows more than its characters; where only they count, it is a string like others. */
export declare abstract class PythonText {
    /** The characters. */
    abstract readonly text: string;
    /** Whether this is Python's `Markup`, a text already escaped for HTML. */
    abstract readonly markup: boolean;
}
/** A `set` in order of insertion, its items already distinct. */
export declare class PythonSet {
    readonly items: readonly PythonKey[];
    constructor(items: readonly PythonKey[]);
}
/** How deep values may nest: beyond it Python's own `json` gives up as well. */
export declare const MAXIMUM_DEPTH = 1000;
/** Whether the number counts as an `int` here; infinities and NaN are floats. */
export declare const isInt: (value: unknown) => value is number | bigint;
/** An integer in its normal form: a number while all digits are safe, a bigint beyond. */
export declare function toInt(value: bigint): number | bigint;
/** An integer from the digits of a literal, such as `-12` or `0xff`. */
export declare function readInt(digits: string): number | bigint;
/** The digits of an integer. */
export declare function formatInt(value: bigint): string;
/** Lets values of a richer kind through `fromJavaScript` untouched. */
export interface ConversionOptions {
    keep?(value: object): boolean;
}
/**
 * Plain JavaScript data as Python values: objects become dicts of their own enumerable members
 * (`undefined` members are left out, as JSON does), Python values stay what they are.
 */
export declare function fromJavaScript(value: unknown, options?: ConversionOptions): PythonValue;
/** Python values as plain JavaScript data: floats become numbers, dicts objects, tuples arrays. */
export declare function toJavaScript(value: PythonValue): unknown;
