import { type Unit } from '../blocks.ts';
/** Gemma's own notation: `<|tool_call>call:NAME{key:<|"|>text<|"|>,n:3}<tool_call|>`. */
export declare const gemmaUnit: Unit;
