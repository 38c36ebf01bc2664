import type { Method } from '../signature.ts';
import type { Value } from '../value.ts';
/** Finds the method of this name that a value has. */
export declare function methodNamed(name: string): (value: Value) => Method | undefined;
/** The methods of a value's class, if it is a class with methods. */
export declare function methodsOf(value: Value): ReadonlyMap<string, Method> | undefined;
