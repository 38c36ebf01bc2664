import { type AddedToken } from './definition.ts';
import type { ControlToken } from './tokenizer.ts';
import type { Vocabulary } from './vocabulary.ts';
export interface ControlSources {
    /** A parsed tokenizer_config.json. */
    readonly config: unknown;
    /** Strings that become special tokens. */
    readonly extra: readonly string[];
}
/**
 * Whether a control token is nothing but white space, which some vocabularies list among theirs: text may
 * become it, because the model itself makes it of blanks.
 */
export declare function isWhiteSpace({ content }: Pick<ControlToken, 'content'>): boolean;
/** The names that a config gives to special tokens, in the order in which they are added. */
export declare const tokenRoles: readonly ['bos_token', 'eos_token', 'unk_token', 'sep_token', 'pad_token', 'cls_token', 'mask_token'];
/**
 * All added tokens with their ids, by ascending id: those of tokenizer.json, then what the config
 * says, then the extra ones. An id is the vocabulary's for the string, else the next free one, as in
 * the reference; the id that a file writes beside a token is ignored.
 */
export declare function gatherControls(added: readonly AddedToken[], vocabulary: Vocabulary, { config, extra }: ControlSources): readonly ControlToken[];
