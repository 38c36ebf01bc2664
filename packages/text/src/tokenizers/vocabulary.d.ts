/** The tokens of a model, without those that were added to it. */
export interface Vocabulary {
    /** How many tokens there are; the first free id of an added token. */
    readonly count: number;
    /** One more than the largest id. */
    readonly size: number;
    /** Whether no two tokens have the same id. */
    readonly isOneToOne: boolean;
    idOf(token: string): number | undefined;
    tokenOf(id: number): string | undefined;
    entries(): Iterable<readonly [string, number]>;
}
/** Indexes a `{ token: id }` object both ways; the way from id to token is built when first used. */
export declare function openVocabulary(value: unknown): Vocabulary;
/** The same for tokens whose id is their place in a list. */
export declare function listVocabulary(tokens: readonly string[]): Vocabulary;
