import type { Unit } from '../blocks.ts';
/** Mistral's two ways: a JSON list, or `NAME[ARGS]{…}`, which may carry an id. */
export declare const mistralUnit: Unit;
