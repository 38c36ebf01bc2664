import type { PythonKey, PythonValue } from '../python/value.ts';
import { TemplateText } from './template-text.ts';
import type { Dict, Text, Value } from './value.ts';
/**
 * Wraps a text from outside, so that a rendering reports where its characters went.
 * It renders to the same characters as the text itself.
 */
export declare const markForeign: (text: string) => TemplateText;
/** What a template may be given: Python values, with texts from outside wrapped where wanted. */
export type TemplateInput = PythonValue | TemplateText | readonly TemplateInput[] | Map<PythonKey, TemplateInput>;
/** The characters of a text that are foreign, as pairs of offsets; `key` where it stands in a dict. */
export type ForeignRanges = (text: string, key?: PythonKey) => readonly number[];
/** Wraps every string inside a value, keys of dicts too; `rangesOf` says which characters are foreign. */
export declare function markForeignWithin(value: PythonValue, rangesOf: ForeignRanges, key?: PythonKey): TemplateInput;
/** A key of a dict as a value: marked if it came from outside. */
export declare function keyValue(dict: Dict, key: PythonKey): Value;
/** The keys of a dict as values. */
export declare function keyValues(dict: Dict): Value[];
/** Remembers that a text from outside became a key of the dict. */
export declare function rememberKey(dict: Dict, key: Text): void;
/** Whether a value holds a character from outside, at any depth. */
export declare function holdsForeign(value: Value): boolean;
/** A copy of a dict that keeps which keys came from outside. */
export declare function copyDict(dict: Dict): Dict;
