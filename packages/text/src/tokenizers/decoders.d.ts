import { type Fields } from './fields.ts';
/** Rewrites the tokens of a text; what the last one of a chain gives is joined. */
export type Decoder = (tokens: readonly string[]) => readonly string[];
/** Builds the decoder of a tokenizer.json. Without one, words are joined with blanks between. */
export declare function openDecoder(fields: Fields | undefined): Decoder;
/** Whether a token stands for one byte, as `<0x0A>` does. */
export declare function isByteToken(token: string): boolean;
