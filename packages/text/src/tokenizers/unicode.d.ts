/** The members of a regular expression class, without its brackets: what normalizing leaves alone. */
export declare const inertInUnicode9: string;
/** A regular expression class (flag v) without the code points that the reference does not know. */
export declare function pinned(set: string): string;
/** What Rust's regular expressions call a word character, as a class (flag v). */
export declare const wordClass: string;
