import type { FunctionScope, Reference, Symbols } from './compile/scope.ts';
import type { Run } from './run.ts';
import type { Input, Value } from './value.ts';
/** The variables of one running call; an empty slot is a name without a value. */
export interface RunFrame {
    readonly slots: (Value | undefined)[];
    readonly parent: RunFrame | undefined;
    readonly run: Run;
}
/** A compiled expression. */
export type Evaluate = (frame: RunFrame) => Value;
/** A compiled condition. */
export type Decide = (frame: RunFrame) => boolean;
/** How a statement ended: 0 onwards, 1 with `break`, 2 with `continue`. */
export type Flow = 0 | 1 | 2;
/** A compiled statement. */
export type Execute = (frame: RunFrame) => Flow;
/** A compiled assignment. */
export type Assign = (frame: RunFrame, value: Value) => void;
/** The value of a name given to the template or known to all. */
export declare function lookUpName(run: Run, name: string): Value | undefined;
/** A frame for one call of a function, its names looked up. */
export declare function openFrame(scope: FunctionScope, parent: RunFrame | undefined, run: Run): RunFrame;
/** How many functions outward a variable lives. */
export declare function distance(from: FunctionScope, to: FunctionScope): number;
/** The frame so many functions outward. */
export declare function outerFrame(frame: RunFrame, hops: number): RunFrame;
/** Reads a variable, without a value where it has none. */
export declare function compileRead(from: FunctionScope, reference: Reference): (frame: RunFrame) => Value | undefined;
/** What has to be done whenever a scope begins. */
export declare function compileEntry(symbols: Symbols): ((frame: RunFrame) => void) | undefined;
/** Calls a value, or raises if it cannot be called. */
export declare function callValue(run: Run, callee: Value, input: Input): Value;
/** Raises Jinja's error for an unknown filter or test. */
export declare function unknownName(kind: 'filter' | 'test', name: string): never;
