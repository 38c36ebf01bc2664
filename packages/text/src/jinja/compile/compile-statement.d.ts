import type { Assign, Execute } from '../frame.ts';
import type { Statement, Target } from '../parse/syntax.ts';
import type { CompilePlace } from './place.ts';
/** Compiles statements to be run one after the other. */
export declare function compileStatements(place: CompilePlace, statements: readonly Statement[]): Execute;
/** Compiles an assignment to a target. */
export declare function compileAssign(place: CompilePlace, target: Target): Assign;
