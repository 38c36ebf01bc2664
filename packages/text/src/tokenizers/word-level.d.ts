import type { Definition } from './definition.ts';
import type { TextModel } from './pipeline.ts';
/**
 * A model whose tokens are whole pieces. With `byte_fallback: true`, which is ours alone, an unknown
 * piece becomes its bytes as tokens `<0x00>` to `<0xFF>`; text that spells such a token does not
 * become one. Where the pre-tokenizer removes nothing and the decoder fuses, every text comes back.
 */
export declare function openWordLevel(definition: Definition): TextModel;
