/** The parts of a format specification that concern the digits of a number. */
export interface NumberFormat {
    /** A letter of Python's format language, or the empty string for none. */
    readonly type: string;
    readonly precision: number | undefined;
    /** Keep the point and trailing zeros, or write the prefix of a radix. */
    readonly alternate: boolean;
}
/** The digits of a float without its sign, in the format asked for. */
export declare function floatDigits(value: number, format: NumberFormat): string;
/** The digits of an int without its sign, with the prefix of its radix where wanted. */
export declare function intDigits(value: number | bigint, format: NumberFormat): string;
/** The prefix of a radix, if there is one, and the digits behind it. */
export declare function splitPrefix(digits: string): readonly [string, string];
