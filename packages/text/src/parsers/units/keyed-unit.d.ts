import type { ToolDefinition } from '../../message.ts';
import type { Unit } from '../blocks.ts';
import type { ValueRule } from '../values.ts';
/** Calls written as a name and tagged pairs of keys and raw values. */
export interface KeyedUnit {
    readonly open: string;
    /** A marker that ends the name; without it the first key or the closing marker does. */
    readonly separator?: string;
    readonly close: string;
    readonly key: {
        readonly open: string;
        readonly close: string;
    };
    readonly value: {
        readonly open: string;
        readonly close: string;
    };
    readonly rule: ValueRule;
}
/** Keys and values: `<tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value></tool_call>`. */
export declare function keyedUnit(format: KeyedUnit, schemas: readonly ToolDefinition[]): Unit;
