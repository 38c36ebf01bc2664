import type { Symbols } from './scope.ts';
/** One template being compiled. */
export interface Compilation {
    readonly source: string;
    /** The names of the blocks compiled so far. */
    readonly blocks: Set<string>;
    /** Whether the template has blocks, which see what the template sets at its top. */
    readonly hasBlocks: boolean;
    /** Expressions and statements compiled so far: the measure of what running them costs. */
    cost: number;
}
/** Where in a template a piece of it stands while it is compiled. */
export interface CompilePlace {
    readonly template: Compilation;
    readonly symbols: Symbols;
    /** Whether this is under an `if`, where unknown filters raise only when they run. */
    readonly isSoft: boolean;
    /** Whether `break` and `continue` have a loop to act on. */
    readonly inLoop: boolean;
    readonly isTop: boolean;
}
/** A scope inside a place, in the same function. */
export declare function innerPlace(place: CompilePlace): CompilePlace;
/** Refuses a template. */
export declare function refuse(place: CompilePlace, at: number, problem: string): never;
