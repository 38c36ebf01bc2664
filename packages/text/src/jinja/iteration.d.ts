import type { Run } from './run.ts';
import type { Value } from './value.ts';
import { TemplateObject } from './value.ts';
/** Whether Python could iterate over the value. */
export declare const isIterable: (value: Value) => boolean;
/** Python's `iter`: an array if all items are in memory, else an iterator. */
export declare function toIterable(value: Value): readonly Value[] | Iterator<Value>;
/** All items of an iterable, as Python's `list` collects them. */
export declare function toList(run: Run, value: Value): readonly Value[];
/** Walks an iterable once, making items only as they are asked for. */
export declare function walk(run: Run, value: Value): Generator<Value>;
/** An iterator object of a template: it can be walked once. */
export declare function iteratorObject(iterator: Iterator<Value>, type?: string): TemplateObject;
/** Python's `len`, or `undefined` for what has none. */
export declare function lengthOf(value: Value): number | undefined;
/** Python's `len`. */
export declare const requireLength: (value: Value) => number;
/** Unpacks a value into exactly so many items. */
export declare function unpack(run: Run, value: Value, count: number): readonly Value[];
