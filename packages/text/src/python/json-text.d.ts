/** What Python writes between a key and its value. */
export declare const PAIR = ": ";
/** A string as `json.dumps` writes it with `ensure_ascii` off. */
export declare function encodeText(text: string): string;
/** A key as `json.dumps` writes it with `ensure_ascii` off, and what stands behind it. */
export declare function encodeUsualKey(key: string): string;
/** A string as `json.dumps` writes it by default, everything but printable ASCII escaped. */
export declare function encodeAscii(text: string): string;
