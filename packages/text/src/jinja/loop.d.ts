import type { Value } from './value.ts';
import { TemplateObject } from './value.ts';
/** A walk over the items of a `for` loop that can look one item ahead. */
export declare class Loop {
    #private;
    index0: number;
    readonly depth0: number;
    readonly object: TemplateObject;
    readonly recurse: Value | undefined;
    constructor(source: readonly Value[] | Iterator<Value>, depth0: number, recurse?: Value);
    /** The next item, or `undefined` at the end. */
    next(): Value | undefined;
    get length(): number;
    /** What a template reads of the loop. */
    attribute(name: string): Value | undefined;
}
/** The items that a test lets through, tested only as they are asked for. */
export declare function filtered(source: readonly Value[] | Iterator<Value>, test: (item: Value) => boolean): Generator<Value>;
