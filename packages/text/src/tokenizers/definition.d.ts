import { type Fields } from './fields.ts';
/** A tokenizer.json with its outer shape checked; each part is read where it is built. */
export interface Definition {
    readonly modelType: string;
    readonly model: Fields;
    readonly normalizer: Fields | undefined;
    readonly preTokenizer: Fields | undefined;
    readonly decoder: Fields | undefined;
    readonly addedTokens: readonly AddedToken[];
}
/** An added token as the file has it; the vocabulary may give it another id. */
export interface AddedToken {
    readonly id: number | undefined;
    readonly content: string;
    readonly special: boolean;
    readonly lstrip: boolean;
    readonly rstrip: boolean;
    readonly singleWord: boolean;
    readonly normalized: boolean;
}
/** Reads a parsed tokenizer.json. */
export declare function readDefinition(value: unknown): Definition;
/** Reads one added token of tokenizer.json, or of the added_tokens_decoder of its config. */
export declare function readAddedToken(value: unknown, where: string): AddedToken;
