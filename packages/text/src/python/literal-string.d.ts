/** A string read from a text, or why and where reading failed. */
export type StringReading = {
    readonly value: string;
    readonly end: number;
} | {
    readonly problem: string;
    readonly at: number;
};
/** Reads one quoted string of Python, its prefix included, from where the prefix begins. */
export declare function readStringLiteral(text: string, offset: number): StringReading;
/** Resolves Python's backslash escapes; an unknown escape stays as written, as in Python. */
export declare function unescapeString(body: string): string | {
    problem: string;
    at: number;
};
