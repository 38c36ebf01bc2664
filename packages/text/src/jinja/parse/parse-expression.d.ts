import type { Expression } from './syntax.ts';
import type { TokenStream } from './tokens.ts';
/** How a list of expressions separated by commas may look. */
export interface TupleOptions {
    /** Whether `a if b else c` may stand in it; after `for … in` and `if` it may not. */
    readonly conditional: boolean;
    /** A name that ends it, besides the end of the tag. */
    readonly until?: string;
    /** Whether parentheses stand around it, so that it may be empty. */
    readonly parenthesised?: boolean;
}
/** Reads an expression, with or without a conditional at its top. */
export declare function parseExpression(stream: TokenStream, conditional?: boolean): Expression;
/** Reads an expression, or a tuple where commas follow. */
export declare function parseTuple(stream: TokenStream, options: TupleOptions): Expression;
/** Whether a list without brackets ends at the token at hand. */
export declare function isTupleEnd(stream: TokenStream, until: string | undefined): boolean;
/** Reads a name, a literal, or a bracketed expression. */
export declare function parsePrimary(stream: TokenStream): Expression;
/** Reads items separated by commas up to a closing bracket, which is taken too. */
export declare function parseItems<T>(stream: TokenStream, closing: string, parse: () => T): T[];
/** Reads the attributes, subscripts and calls behind a value. */
export declare function parsePostfix(stream: TokenStream, start: Expression): Expression;
