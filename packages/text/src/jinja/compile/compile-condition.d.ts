import type { Decide } from '../frame.ts';
import type { Expression } from '../parse/syntax.ts';
import type { CompilePlace } from './place.ts';
/** Compiles an expression of which only the truth counts. */
export declare function compileCondition(place: CompilePlace, expression: Expression): Decide;
