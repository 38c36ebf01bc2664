import type { Method } from '../signature.ts';
type FindFilter = (name: string) => Method | undefined;
/** The filters that work with other filters and tests, item by item. */
export declare function selectionFilters(findFilter: FindFilter): readonly (readonly [string, Method])[];
export {};
