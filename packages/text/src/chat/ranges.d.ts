import type { ChatText } from './chat.ts';
/** The ranges that lie in the part of a text from `start` with this length, counted from `start`. */
export declare function shift(ranges: ChatText['foreign'], start: number, length?: number): readonly (readonly [number, number])[];
