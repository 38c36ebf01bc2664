/** A handful of literal strings that are looked for together, in one pass. */
export declare class Markers {
    #private;
    readonly strings: readonly string[];
    /** The length of the longest. */
    readonly longest: number;
    constructor(strings: readonly string[]);
    /** The first marker at or behind `from`. */
    find(text: string, from: number): {
        readonly index: number;
        readonly marker: string;
    } | undefined;
    /** Where the tail of `text` begins that may still grow into a marker; its length if none may. */
    unsure(text: string, from: number): number;
}
/** Markers of the given strings, to be made once per format. */
export declare const markers: (...strings: readonly string[]) => Markers;
