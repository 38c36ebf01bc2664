/** A foreign regular expression, matched in linear time. */
export interface Pattern {
    /** Whether JavaScript's own engine matches it, because it is linear there. */
    readonly isNative: boolean;
    /** Whether it matches anywhere in a text. */
    test(text: string): boolean;
    /** Gives where each match in a text begins and ends, as `matchAll` finds them. */
    forEach(text: string, take: (start: number, end: number) => void): void;
}
/**
 * Finds the same matches as the expression, in time linear in the text. Undefined if that cannot be
 * promised: it has back-references or rare syntax.
 */
export declare function linearPattern(expression: RegExp): Pattern | undefined;
/** An expression that is known to be harmless. */
export declare function nativePattern(expression: RegExp): Pattern;
