import type { Run } from '../run.ts';
import type { Input, Value } from '../value.ts';
/** A test of a template: `value is name(arguments)`. */
export type Test = (run: Run, value: Value, input: Input) => boolean;
/** Every test a chat template can use. */
export declare const TESTS: ReadonlyMap<string, Test>;
