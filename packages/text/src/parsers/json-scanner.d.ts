/** Reads one JSON value strictly, as its text arrives; every character is looked at once. */
export declare class JsonScanner {
    #private;
    /** Why the text is not JSON. */
    problem: string | undefined;
    /** Where keys, values and items within the outermost brackets begin and end in the value. */
    readonly edges: number[];
    /** Whether the value goes on behind what was read. */
    get waits(): boolean;
    /** Reads on in `text` from `from`, to the value's end, the first problem or where text is missing. */
    read(text: string, from: number, ended: boolean): number;
}
