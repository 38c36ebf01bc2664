import type { Statement } from './syntax.ts';
import type { TokenStream } from './tokens.ts';
/** Reads a whole template. */
export declare function parseTemplate(stream: TokenStream): Statement[];
