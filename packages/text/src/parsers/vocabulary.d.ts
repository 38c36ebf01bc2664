/** Where in a marker a control string stands, and how long it is. */
type Control = readonly [offset: number, length: number];
/** The control strings of a vocabulary, and those that markers are made of. */
export interface Vocabulary {
    readonly longestFirst: readonly string[];
    readonly within: Map<string, readonly Control[]>;
}
/** The vocabulary with these control strings, made once: it is the same for every output. */
export declare function vocabularyOf(controls: readonly string[]): Vocabulary;
/** The control strings that a marker is made of: it counts only where all of them are tokens. */
export declare function controlsWithin(marker: string, { longestFirst, within }: Vocabulary): readonly Control[];
export {};
