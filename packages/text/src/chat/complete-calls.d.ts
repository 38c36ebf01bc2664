import type { Message } from '../message.ts';
/**
 * A conversation in which every tool message answers a call: the calls that a policy got wrong are
 * only in the words of its turn, and some templates refuse an answer that nobody asked for.
 */
export declare function completeCalls(messages: readonly Message[]): readonly Message[];
