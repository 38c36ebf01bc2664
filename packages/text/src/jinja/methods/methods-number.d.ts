import type { Method } from '../signature.ts';
/** The methods of `int` and `bool`. */
export declare const INT_METHODS: ReadonlyMap<string, Method>;
/** The methods of `float`. */
export declare const FLOAT_METHODS: ReadonlyMap<string, Method>;
