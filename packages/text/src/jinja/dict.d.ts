import type { PythonKey } from '../python/value.ts';
import type { Run } from './run.ts';
import type { Behaviour, Dict, Value } from './value.ts';
import { TemplateObject } from './value.ts';
/** Stores an item under a key of any hashable kind. */
export declare function setItem(dict: Dict, key: Value, value: Value): void;
/** A dict from its items. */
export declare function fromEntries(entries: Iterable<readonly [Value, Value]>): Dict;
/** A key of the dict with its value. */
export declare const itemPair: (dict: Dict, key: PythonKey) => [Value, Value];
/** The pairs of a dict, as tuples. */
export declare function itemTuples(dict: Dict): Value[];
declare const VIEWS: {
    keys: Behaviour;
    values: Behaviour;
    items: Behaviour;
};
/** What `keys()`, `values()` and `items()` of a dict give. */
export declare const dictView: (dict: Dict, part: keyof typeof VIEWS) => TemplateObject;
/** The pairs of a dict sorted by key where the keys have an order, else as they are. */
export declare function sortedEntries(run: Run, dict: Dict): [Value, Value][];
/** A value that must be a dict, for what reads its items. */
export declare function requireDict(value: Value): Dict;
export {};
