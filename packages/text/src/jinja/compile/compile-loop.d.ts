import type { Execute } from '../frame.ts';
import type { ForStatement } from '../parse/syntax.ts';
import type { CompilePlace } from './place.ts';
type At = {
    readonly at: number;
};
/** Compiles a `for` loop. */
export declare function compileFor(place: CompilePlace, node: ForStatement & At): Execute;
export {};
