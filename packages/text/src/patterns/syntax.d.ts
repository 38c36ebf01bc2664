/** A part of a regular expression, as it is matched. */
export type Part = 
/** One character of a set. */
{
    readonly kind: 'set';
    readonly accepts: (point: number) => boolean;
} | {
    readonly kind: 'sequence';
    readonly parts: readonly Part[];
}
/** The first of these that lets the whole match. */
 | {
    readonly kind: 'choice';
    readonly parts: readonly Part[];
} | {
    readonly kind: 'repeat';
    readonly part: Part;
    readonly least: number;
    /** Infinity where it has no end. */
    readonly most: number;
    readonly isLazy: boolean;
}
/** A lookahead or lookbehind, positive or negative. */
 | {
    readonly kind: 'look';
    readonly part: Part;
    readonly isAhead: boolean;
    readonly isNegated: boolean;
}
/** An atomic part: once matched, it is not tried in another way. */
 | {
    readonly kind: 'atomic';
    readonly part: Part;
} | {
    readonly kind: 'edge';
    readonly of: Edge;
};
/** A place between characters. */
export type Edge = 'text-start' | 'text-end' | 'line-start' | 'line-end' | 'word-edge' | 'no-word-edge';
/** Whether a part can match nothing. */
export declare function isNullable(part: Part): boolean;
/**
 * Whether a backtracking engine needs only linear time: every unbounded repetition is the last part
 * of its alternative, so that nothing after it can fail.
 */
export declare function isTame(part: Part): boolean;
