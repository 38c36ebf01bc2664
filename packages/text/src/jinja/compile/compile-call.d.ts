import type { Decide, Evaluate, RunFrame } from '../frame.ts';
import type { CallArguments, Expression } from '../parse/syntax.ts';
import type { Input, Value } from '../value.ts';
import type { CompilePlace } from './place.ts';
type Of<Kind extends Expression['kind']> = Extract<Expression, {
    kind: Kind;
}>;
/** Compiles the arguments of a call. */
export declare function compileArguments(place: CompilePlace, input: CallArguments): (frame: RunFrame) => Input;
/** Compiles a call; a method call does not create a bound method first. */
export declare function compileCall(place: CompilePlace, expression: Of<'call'>): Evaluate;
/** Compiles a filter applied to a value. */
export declare function compileFilter(place: CompilePlace, expression: Of<'filter'>): Evaluate;
/** Compiles a filter that is given its value. */
export declare function compileFilterOn(place: CompilePlace, expression: Of<'filter'>): (frame: RunFrame, value: Value) => Value;
/** Compiles a test. */
export declare function compileTest(place: CompilePlace, expression: Of<'test'>): Decide;
export {};
