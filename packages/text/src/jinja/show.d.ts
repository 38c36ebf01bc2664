import type { Run } from './run.ts';
import type { Text, Value } from './value.ts';
/** Python's `repr` of a template value, whatever it costs. */
export declare const reprValue: (value: Value) => string;
/** Python's `str` of a value, paid for by the size of what had to be made. */
export declare function printable(run: Run, value: Value): Text;
/** Python's `repr` of a value, paid for like `printable`. */
export declare function printableRepr(run: Run, value: Value): Text;
/** Jinja's `soft_str`: like `printable`, but Markup stays Markup. */
export declare const softText: (run: Run, value: Value) => Text;
