import type { Definition } from './definition.ts';
import type { TextModel } from './pipeline.ts';
/** Byte pair encoding over characters: SentencePiece's, as Llama 2, Mistral and Gemma have it. */
export declare function openCharacterPairs(definition: Definition): TextModel;
