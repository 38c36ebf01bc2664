import { type Fields } from '../fields.ts';
import { type Normalizer } from './rewriting.ts';
/** Builds the normalizer of a tokenizer.json; undefined where there is none. */
export declare function openNormalizer(fields: Fields | undefined): Normalizer | undefined;
