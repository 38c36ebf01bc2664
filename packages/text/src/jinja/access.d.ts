import { PythonTuple } from '../python/value.ts';
import type { Run } from './run.ts';
import type { Value } from './value.ts';
/** Jinja's `object.name`: an attribute first, then an item. */
export declare function getAttribute(object: Value, name: string): Value;
/** What `object.name` is, if it is anything. */
export declare function lookUpAttribute(object: Value, name: string): Value | undefined;
/** Jinja's `object[key]`: an item first, then an attribute. */
export declare function getItem(object: Value, key: Value): Value;
/** What `object[key]` is, if it is anything. */
export declare function lookUpItem(object: Value, key: Value): Value | undefined;
/** Whether a dict has under this name what it holds there and nothing else: no method, nothing refused. */
export declare const isPlainMember: (name: string) => boolean;
/** An attribute of the object's class; one that the sandbox refuses gives an undefined value that says so. */
export declare function findAttribute(object: Value, name: string): Value | undefined;
/** A group as `groupby` gives it: a tuple whose items are also `grouper` and `list`. */
export declare function groupTuple(grouper: Value, items: readonly Value[]): PythonTuple<Value>;
/** The bounds of a slice as written: start, stop, step. */
export type SliceBounds = readonly [Value, Value, Value];
/** Python's `object[start:stop:step]`. */
export declare function getSlice(run: Run, object: Value, bounds: SliceBounds): Value;
