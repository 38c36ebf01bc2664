import type { Method } from '../signature.ts';
/** The filters on lists, dicts and other iterables. */
export declare const LIST_FILTERS: readonly (readonly [string, Method])[];
