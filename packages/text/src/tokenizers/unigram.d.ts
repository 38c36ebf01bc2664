import type { Definition } from './definition.ts';
import type { TextModel } from './pipeline.ts';
/** Tokens with scores: a piece becomes those whose scores have the largest sum. */
export declare function openUnigram(definition: Definition): TextModel;
