import type { Run } from '../run.ts';
import type { Value } from '../value.ts';
/** Python's `pprint.pformat`: one line where it fits, else one item per line, keys sorted. */
export declare function prettyPrint(run: Run, value: Value): string;
