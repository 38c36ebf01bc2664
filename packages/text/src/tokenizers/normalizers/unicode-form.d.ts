import { type Normalizer } from './rewriting.ts';
/** One of Unicode's four normal forms. */
export declare function unicodeForm(form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'): Normalizer;
