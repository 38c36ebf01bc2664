import type { Definition } from './definition.ts';
import type { TextModel } from './pipeline.ts';
/** Words cut from the left into the longest tokens there are; a word that cannot be is unknown. */
export declare function openWordPiece(definition: Definition): TextModel;
