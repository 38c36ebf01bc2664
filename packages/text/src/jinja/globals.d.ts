import type { Value } from './value.ts';
/** The names that every chat template can use. */
export declare const GLOBALS: ReadonlyMap<string, Value>;
