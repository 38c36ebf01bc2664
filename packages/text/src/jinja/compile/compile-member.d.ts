import type { Evaluate, RunFrame } from '../frame.ts';
import type { Expression } from '../parse/syntax.ts';
import type { Value } from '../value.ts';
import type { CompilePlace } from './place.ts';
type Of<Kind extends Expression['kind']> = Extract<Expression, {
    kind: Kind;
}>;
/** A compiled expression that says nothing where its value is not there. */
type Find = (frame: RunFrame) => Value | undefined;
/** Compiles an expression for what only asks whether it is there or true: no undefined value is made. */
export declare function compileFind(place: CompilePlace, expression: Expression): Find;
/** Compiles the reading of a name. */
export declare function compileName(place: CompilePlace, { name }: Of<'name'>): Evaluate;
/** Compiles `object.name`. */
export declare function compileAttribute(place: CompilePlace, expression: Of<'attribute'>): Evaluate;
/** Compiles `object[key]`. */
export declare function compileItem(place: CompilePlace, expression: Of<'item'>): Evaluate;
export {};
