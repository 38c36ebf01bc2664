import type { Method } from '../signature.ts';
/** The methods of `dict`. */
export declare const DICT_METHODS: ReadonlyMap<string, Method>;
/** The methods of `tuple`. */
export declare const TUPLE_METHODS: ReadonlyMap<string, Method>;
/** The methods of `list`. */
export declare const LIST_METHODS: ReadonlyMap<string, Method>;
