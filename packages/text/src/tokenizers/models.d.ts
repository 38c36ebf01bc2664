import type { Definition } from './definition.ts';
import type { TextModel } from './pipeline.ts';
/** Opens the model of a tokenizer.json. */
export declare function openModel(definition: Definition): TextModel;
