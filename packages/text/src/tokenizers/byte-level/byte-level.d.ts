import type { Definition } from '../definition.ts';
import type { TextModel } from '../pipeline.ts';
/**
 * Byte-level BPE, the model of GPT, Llama 3, Qwen, DeepSeek and most others today. Throws
 * `UnsupportedPartError` for a BPE model that is not of this kind.
 */
export declare function openByteLevel(definition: Definition): TextModel;
