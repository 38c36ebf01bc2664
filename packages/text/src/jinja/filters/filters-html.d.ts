import type { Method } from '../signature.ts';
/** The filters that make or take HTML. */
export declare const HTML_FILTERS: readonly (readonly [string, Method])[];
