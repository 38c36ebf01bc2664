/** The variables of one function: the template itself, a macro, a block, a recursive loop. */
export interface FunctionScope {
    readonly parent: FunctionScope | undefined;
    /** How many slots its frames need. */
    size: number;
    /** Names looked up once, when the function begins. */
    readonly lookups: {
        readonly slot: number;
        readonly name: string;
    }[];
}
/** Where a variable lives. */
export interface Reference {
    readonly slot: number;
    readonly owner: FunctionScope;
}
/** What a variable holds when its scope begins. */
export type Load = {
    readonly kind: 'parameter';
} | {
    readonly kind: 'lookup';
    readonly name: string;
} | {
    readonly kind: 'alias';
    readonly from: Reference;
} | {
    readonly kind: 'missing';
};
/** The names of one scope, as Jinja's compiler tracks them. */
export interface Symbols {
    readonly parent: Symbols | undefined;
    readonly owner: FunctionScope;
    /** One slot per name of the scope, shared by the branches of an `if`. */
    readonly slots: Map<string, Reference>;
    readonly references: Map<string, Reference>;
    readonly loads: Map<Reference, Load>;
    readonly stores: Set<string>;
}
/** A new function, whose frames see those of `parent`. */
export declare const newFunction: (parent: FunctionScope | undefined) => FunctionScope;
/** A new scope within a function. */
export declare const newSymbols: (owner: FunctionScope, parent: Symbols | undefined) => Symbols;
/** A copy for one branch of an `if`. */
export declare const copySymbols: (symbols: Symbols) => Symbols;
/** The variable a name means in a scope or around it. */
export declare function findReference(symbols: Symbols | undefined, name: string): Reference | undefined;
/** Notes that a scope sets a name. */
export declare function store(symbols: Symbols, name: string): void;
/** Notes that a name is given to a scope: a loop's target, a macro's argument. */
export declare function declare(symbols: Symbols, name: string): Reference;
/** Notes that a scope reads a name. */
export declare function load(symbols: Symbols, name: string): void;
/** Joins the branches of an `if`: a name set in only some of them keeps its outer value elsewhere. */
export declare function joinBranches(symbols: Symbols, branches: readonly Symbols[]): void;
