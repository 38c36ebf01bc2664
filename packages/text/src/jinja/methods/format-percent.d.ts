import type { Run } from '../run.ts';
import type { Text, Value } from '../value.ts';
/** Python's `text % values`. */
export declare function formatPercent(run: Run, format: Text, input: Value): Text;
