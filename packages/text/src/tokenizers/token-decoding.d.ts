import { type Decoder } from './decoders.ts';
import { type Decoding } from './decoding.ts';
import { type Fields } from './fields.ts';
/** Decodes ids as the decoder of a tokenizer.json says: bytes as bytes, everything else token by token. */
export declare function openDecoding(fields: Fields | undefined, tokenOf: (id: number) => string | undefined): Decoding;
/** Decodes ids with a decoder; ids that are not tokens are left out. */
export declare function tokenDecoding(decoder: Decoder, tokenOf: (id: number) => string | undefined): Decoding;
