import type { ToolDefinition } from '../../message.ts';
import { type Unit } from '../blocks.ts';
import { type ValueRule } from '../values.ts';
/** A tag whose head names something: a call, or one of its parameters. */
export interface Tag {
    readonly open: string;
    /** What ends the head. */
    readonly end: string;
    readonly close: string;
    /** The attribute that holds the name. Without it the head is the name. */
    readonly name?: string;
}
/** Calls written as tags around raw values. */
export interface TagUnit {
    readonly call: Tag;
    readonly parameter: Tag;
    /** Markers right before and after the call's own tags. */
    readonly wrap?: {
        readonly open: string;
        readonly close: string;
    };
    /** The attribute of a parameter that tells its type, and what it says for text. */
    readonly type?: {
        readonly attribute: string;
        readonly text: string;
    };
    /** Values stand on lines of their own. */
    readonly lines?: boolean;
    /** Values may be CDATA sections, and escape characters as XML does. */
    readonly xml?: boolean;
    /** The parameters may be one JSON object instead. */
    readonly json?: boolean;
    readonly rule: ValueRule;
}
/** A raw parameter, and whether its tag says that it is text. */
export interface Parameter {
    readonly name: string;
    readonly raw: string;
    readonly declared?: 'text' | 'json';
}
/** Tags: `<invoke name="…"><parameter name="…">value</parameter></invoke>` and its relatives. */
export declare function tagUnit(format: TagUnit, schemas: readonly ToolDefinition[]): Unit;
/** What is needed to type the raw parameters of a call. */
export interface Typing {
    readonly schemas: readonly ToolDefinition[];
    readonly rule: ValueRule;
    readonly lines?: boolean;
}
/** A call from raw parameters, each typed by its tag or by the tool's schema. */
export declare function typedCall(name: string, parameters: readonly Parameter[], typing: Typing): import("../parser.ts").ParsedCall;
