import type { Method } from '../signature.ts';
/** Every filter a chat template can use: Jinja's own, and `tojson` as transformers defines it. */
export declare const FILTERS: ReadonlyMap<string, Method>;
