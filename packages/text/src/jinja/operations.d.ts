import type { PythonKey } from '../python/value.ts';
import type { ArithmeticOperator } from './parse/syntax.ts';
import type { Run } from './run.ts';
import type { Dict, Value } from './value.ts';
/** Python's truth of a value. */
export declare function isTrue(value: Value): boolean;
/** Python's `==`. */
export declare function isEqual(run: Run, left: Value, right: Value): boolean;
/** Python's orderings; an undefined value on either side raises. */
export declare function isOrdered(run: Run, operator: '<' | '<=' | '>' | '>=', [left, right]: readonly [Value, Value]): boolean;
/** The key under which a value is stored in dicts; raises for what Python cannot hash. */
export declare function toKey(value: Value): PythonKey;
/** Looks a key up in a dict as Python does. */
export declare function lookUp(dict: Dict, key: Value): Value | undefined;
/** Python's `in`. */
export declare function isIn(run: Run, item: Value, container: Value): boolean;
/** Python's `+`. */
export declare function add(run: Run, left: Value, right: Value): Value;
/** Python's arithmetic, on numbers and where strings and lists take part in it. */
export declare function calculate(run: Run, operator: ArithmeticOperator, operands: readonly [Value, Value]): Value;
/** Python's unary `+` and `-`. */
export declare function applySign(operator: '+' | '-', value: Value): Value;
