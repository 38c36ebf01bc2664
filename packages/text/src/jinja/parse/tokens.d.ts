import type { Token } from './lexer.ts';
/** A walk over the tokens of one template. */
export interface TokenStream {
    readonly source: string;
    readonly tokens: readonly Token[];
    position: number;
    /** How many expressions and statements are open around the current token. */
    depth: number;
}
/** The token at hand. */
export declare const current: (stream: TokenStream) => Token;
/** The token after the one at hand. */
export declare const following: (stream: TokenStream) => Token;
/** Takes the token at hand. */
export declare function advance(stream: TokenStream): Token;
/** Whether a token is this name. */
export declare const isName: (token: Token, name: string) => boolean;
/** Whether the token at hand is this operator. */
export declare const isOperator: (stream: TokenStream, operator: string) => boolean;
/** Takes the token at hand if it is this name. */
export declare function takeName(stream: TokenStream, name: string): boolean;
/** Takes the token at hand if it is this operator. */
export declare function takeOperator(stream: TokenStream, operator: string): boolean;
/** Stops with a sentence about the token at hand. */
export declare function fail(stream: TokenStream, problem: string, token?: Token): never;
/** What a token looks like to the author of the template. */
export declare function describe(token: Token): string;
/** Takes the token at hand, which must be of this kind and, where given, value. */
export declare function expect(stream: TokenStream, kind: Token['kind'], value?: string): Token;
/** Takes a name and gives its text. */
export declare const expectName: (stream: TokenStream) => string;
/** Reads one level deeper, within bounds. */
export declare function deeper<T>(stream: TokenStream, read: () => T): T;
