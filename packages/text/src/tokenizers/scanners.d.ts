/**
 * The end of the piece that begins at `start`, in UTF-16 units up to `end`. Written by hand for the
 * split patterns that most models use: faster than a regular expression, and never backtracking.
 */
export type Scanner = (units: Uint16Array, start: number, end: number) => number;
/** The split pattern of GPT-2, which the pre-tokenizer ByteLevel implies. */
export declare const gpt2Pattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/** Every split pattern that has a scanner. */
export declare const scannedPatterns: readonly string[];
/** The scanner of a split pattern, if it is one of `scannedPatterns`; all tokenizers share it. */
export declare function scannerOf(pattern: string): Scanner | undefined;
