import { type Fields } from '../fields.ts';
import { type Normalizer } from './rewriting.ts';
/** SentencePiece's table of what replaces what, as an array of a trie and the texts it leads to. */
export declare function precompiled(fields: Fields): Normalizer;
