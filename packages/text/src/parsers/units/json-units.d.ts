import { type Unit } from '../blocks.ts';
import { type Broken } from '../call.ts';
import { type JsonValue } from '../json.ts';
import type { ParsedCall } from '../parser.ts';
/** Calls written as JSON between two markers. */
export interface JsonUnit {
    readonly open: readonly string[];
    /** What must follow the opening marker, blanks aside. */
    readonly lead?: string;
    readonly close?: string;
    /** What stands between one JSON value and the next, where several may follow one marker. */
    readonly separator?: string;
    /** Reads one call from its object. @default an object with name and arguments */
    readonly read?: (object: JsonValue) => ParsedCall | Broken;
}
/** JSON in tags: `<tool_call>{"name": …, "arguments": …}</tool_call>` and its relatives. */
export declare function jsonUnit(options: JsonUnit): Unit;
/** Calls whose name stands before their JSON, each part set off by markers. */
export interface NamedUnit {
    readonly open: string;
    /** What stands between the opening marker and the name. */
    readonly lead?: string;
    /** What ends the name. */
    readonly separator: string;
    /** Opening and closing line of a code fence around the JSON. */
    readonly fence?: {
        readonly open: string;
        readonly close: string;
    };
    readonly close?: string;
    /** Makes the call from what stands before the JSON and the JSON; empty where there is none. */
    readonly read: (head: string, json: string) => ParsedCall | Broken;
}
/** Names and JSON: `<|tool_call_begin|>NAME<|tool_call_argument_begin|>{…}<|tool_call_end|>`. */
export declare function namedUnit(options: NamedUnit): Unit;
