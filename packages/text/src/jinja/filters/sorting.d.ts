import type { Run } from '../run.ts';
import type { Value } from '../value.ts';
import type { Getter } from './attribute.ts';
/** Python's `sorted`: stable, by `<` on the keys, raising where keys have no order. */
export declare function sortValues(run: Run, items: readonly Value[], options: {
    readonly key: Getter;
    readonly reverse: boolean;
}): Value[];
