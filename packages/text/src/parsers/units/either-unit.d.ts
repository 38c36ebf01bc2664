import { type Unit } from '../blocks.ts';
/** Calls that may be written in two ways: the second where one of `opens` stands. */
export declare function eitherUnit(first: Unit, second: Unit, opens: readonly string[]): Unit;
