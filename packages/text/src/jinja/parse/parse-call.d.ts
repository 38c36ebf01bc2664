import type { CallArguments, Expression } from './syntax.ts';
import type { TokenStream } from './tokens.ts';
/** Reads the arguments of a call, parentheses included. */
export declare function parseArguments(stream: TokenStream): CallArguments;
/** Reads one filter, from its name on. */
export declare function parseFilterCall(stream: TokenStream, value: Expression | undefined): Expression;
/** Reads a filter behind a value, from the bar on. */
export declare function parseFilter(stream: TokenStream, value: Expression): Expression;
/** Reads a test behind a value, from `is` on. */
export declare function parseTest(stream: TokenStream, value: Expression): Expression;
