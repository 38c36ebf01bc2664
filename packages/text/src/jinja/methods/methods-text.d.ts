import type { Run } from '../run.ts';
import type { Method } from '../signature.ts';
import type { Text, Value } from '../value.ts';
type Side = 'left' | 'right' | 'both';
/** Takes spaces, or the characters given, away from the ends of a text. */
export declare function stripText(text: Text, wanted: Value | undefined, side: Side): Text;
/** Replaces up to `count` occurrences (all, if negative). */
export declare function replaceText(run: Run, text: Text, change: readonly [string, Text, number]): Text;
/** Python puts the odd space of a centred text on the left if the width is odd. */
export declare function center(run: Run, text: Text, width: number, fill?: string): Text;
/** The methods of `str` that look into it or change it. */
export declare const TEXT_METHODS: readonly (readonly [string, Method])[];
export {};
