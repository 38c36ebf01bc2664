import type { Run } from './run.ts';
import type { Input, Value } from './value.ts';
/** The parameters of a built-in function, in order; those after `required` may be left out. */
export interface Signature {
    readonly name: string;
    readonly parameters: readonly string[];
    readonly required: number;
    /** Whether arguments may be passed by name. */
    readonly byName: boolean;
}
/** A signature from its words: `signature('replace', 'old new count?')`. */
export declare function signature(name: string, words: string, byName?: boolean): Signature;
/** Puts the arguments of a call in the order of the parameters, or raises as Python does. */
export declare function bind(shape: Signature, input: Input): readonly (Value | undefined)[];
/** The work of a method: the object it belongs to, and its arguments in order. */
export type MethodBody<Self extends Value> = (self: Self, values: readonly (Value | undefined)[], run: Run) => Value;
/** A method of a Python class. */
export interface Method {
    /** Whether the sandbox refuses it, because it would change the object. */
    readonly isRefused: boolean;
    readonly call: (run: Run, self: Value, input: Input) => Value;
}
/** A method from its signature and its work. */
export declare function method<Self extends Value>(shape: Signature, body: MethodBody<Self>): Method;
/** A method that exists in Python but that the sandbox never gives out. */
export declare const REFUSED: Method;
