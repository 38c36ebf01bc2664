import type { Method } from '../signature.ts';
/** The filters on text. */
export declare const TEXT_FILTERS: readonly (readonly [string, Method])[];
