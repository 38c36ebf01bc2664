import { IdBuffer } from './buffers.ts';
import type { Decoding } from './decoding.ts';
import type { Normalizer } from './normalizers/rewriting.ts';
import type { ControlToken, Tokenizer } from './tokenizer.ts';
import type { Vocabulary } from './vocabulary.ts';
/** The model-specific part of a tokenizer; control tokens work the same for all models. */
export interface TextModel {
    readonly vocabulary: Vocabulary;
    readonly normalize: Normalizer | undefined;
    /** An encoder of text that is data: its ids are added to `ids` and are never control tokens. */
    openEncoder(controls: readonly ControlToken[], ids: IdBuffer): PlainEncoder;
    openDecoding(tokenOf: (id: number) => string | undefined): Decoding;
}
/**
 * Encodes normalized text between two control tokens, which is never empty; `isFirst` where nothing
 * stands before it.
 */
export type PlainEncoder = (text: string, isFirst: boolean) => void;
/** Puts a model and its control tokens together. */
export declare function assemble(model: TextModel, controls: readonly ControlToken[]): Tokenizer;
