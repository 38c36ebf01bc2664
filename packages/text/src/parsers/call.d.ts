import { type JsonValue } from './json.ts';
import type { ParsedCall } from './parser.ts';
/** Why something is not a call, and the tool it seems to have meant. */
export interface Broken {
    readonly kind: 'broken';
    readonly problem: string;
    readonly name?: string;
}
/** The keys under which a format writes a call as a JSON object. */
export interface CallKeys {
    readonly name: readonly string[];
    readonly arguments: readonly string[];
    readonly id?: string;
}
/** The keys that most formats share. */
export declare const commonKeys: CallKeys;
export declare const broken: (problem: string, name?: string) => Broken;
/** The calls of a JSON value: an object is one call, an array one per item. */
export declare function callsOf(json: JsonValue, read: (object: JsonValue) => ParsedCall | Broken): ParsedCall[];
/** A call that was tried: what is known of it, and the text it was read from. */
export declare function malformed(attempt: Broken, raw: string): ParsedCall;
/** A call written as one JSON object with a name and arguments. */
export declare function callFromObject(object: JsonValue, keys: CallKeys): ParsedCall | Broken;
/** A call written as an object whose only key is the tool's name. */
export declare function callFromEntry(object: JsonValue): ParsedCall | Broken;
/** A call of a tool with JSON arguments: absent and null are none, a string is decoded once. */
export declare function callWithArguments(name: string, json: string | undefined): ParsedCall | Broken;
/** A call from parameters whose values are JSON texts already; of equal names the last. */
export declare function callWithValues(name: string, values: ReadonlyMap<string, string>): ParsedCall;
/** Whether the text can be a tool's name: no blanks, no quotes, no brackets. */
export declare const isName: (text: string) => boolean;
