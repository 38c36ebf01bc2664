import type { Evaluate } from '../frame.ts';
import type { Expression } from '../parse/syntax.ts';
import type { Value } from '../value.ts';
import type { CompilePlace } from './place.ts';
/** Compiles an expression to a closure. */
export declare function compileExpression(place: CompilePlace, expression: Expression): Evaluate;
/** The values of expressions that are all constants. */
export declare function constantValues(expressions: readonly Expression[]): readonly Value[] | undefined;
/** Compiles expressions one by one. */
export declare const compileAll: (place: CompilePlace, expressions: readonly Expression[]) => Evaluate[];
