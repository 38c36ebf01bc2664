import type { Method } from '../signature.ts';
/** The methods of `str` that fill in a format. */
export declare const FORMAT_METHODS: readonly (readonly [string, Method])[];
