import type { Expression, Statement, Target } from '../parse/syntax.ts';
import type { Symbols } from './scope.ts';
/** The expressions directly inside an expression. */
export declare function childrenOf(expression: Expression): readonly (Expression | undefined)[];
/** Notes the names an expression reads. */
export declare function visitExpression(symbols: Symbols, expression: Expression | undefined): void;
/** Notes the names an assignment sets; `given` ones are set before the scope begins. */
export declare function visitTarget(symbols: Symbols, target: Target, given?: boolean): void;
/** Notes the names that statements read and set in a scope; scopes inside them are left out. */
export declare function visitStatements(symbols: Symbols, statements: readonly Statement[]): void;
/** Whether statements read a name before anything in them sets it, at any depth. */
export declare function readsName(statements: readonly Statement[], name: string): boolean;
/** Whether any statement, at any depth, assigns to a name. */
export declare function setsName(statements: readonly Statement[], name: string): boolean;
