import { type IdBuffer } from './buffers.ts';
import type { Definition } from './definition.ts';
import type { TextModel } from './pipeline.ts';
import type { Vocabulary } from './vocabulary.ts';
/** A model that reads pieces of text, character by character. */
export interface PieceModel {
    readonly vocabulary: Vocabulary;
    /** Adds the ids of a piece, which is never empty. */
    encode(piece: string, ids: IdBuffer): void;
}
/** Puts a model that reads characters together with what comes before and behind it. */
export declare function openPieceModel(definition: Definition, model: PieceModel): TextModel;
