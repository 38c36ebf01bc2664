import type { Unit } from '../blocks.ts';
/** Llama 3's JSON behind a marker; several objects are set apart by semicolons. */
export declare const llamaUnit: Unit;
/** The same without the marker. Plain JSON is a call only if it has a name and arguments. */
export declare const llamaOpening: Unit;
