import { type Fields } from '../fields.ts';
import { type Normalizer } from './rewriting.ts';
/** Takes away every mark, whatever it stands on. */
export declare const stripAccents: Normalizer;
/** What the training of translation models did to control characters and odd spaces. */
export declare const nmt: readonly Normalizer[];
export declare const lowercase: Normalizer;
/** BERT's steps, of which a file wants some. */
export declare function bertSteps(fields: Fields): readonly Normalizer[];
