import type { Value } from '../value.ts';
/** Reads something out of an item, as the `attribute` argument of filters says. */
export type Getter = (item: Value) => Value;
/** How a getter treats what it found. */
export interface GetterOptions {
    readonly change?: (value: Value) => Value;
    readonly fallback?: Value | undefined;
}
/** Strings without their case, everything else as it is. */
export declare const ignoreCase: (value: Value) => Value;
/** A getter for an attribute such as `'function.name'`; without one it gives the item itself. */
export declare function makeGetter(attribute: Value | undefined, options?: GetterOptions): Getter;
/** A getter for several attributes separated by commas, which gives the list of what they hold. */
export declare function makeListGetter(attribute: Value | undefined, options?: GetterOptions): Getter;
