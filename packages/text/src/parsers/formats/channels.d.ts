import { type StageReader, type Unit } from '../blocks.ts';
import { type Thinking } from '../thinking.ts';
/** Outputs made of channels: thinking, an answer, calls. */
export interface Channels {
    readonly thinking: Thinking;
    readonly answer: {
        readonly open: string;
        readonly close: string;
    };
    readonly calls: {
        readonly open: string;
        readonly close: string;
    };
    /** What closes the whole output. */
    readonly end?: string;
    /** Whether another channel ends thinking that is not closed yet, even if that is closed later. */
    readonly interrupts?: boolean;
    /** Beginnings of markers that are dropped where the output ends within one. */
    readonly cut?: readonly string[];
}
/**
 * Splits channels. Only what the answer's channel holds is content, together with the calls and
 * what follows them, which is passed on as it is. Text outside counts unless an answer follows it.
 */
export declare function channelReader(format: Channels): StageReader;
/** Thinking that blocks of calls interrupt: they are passed on, the thoughts around them are kept. */
export declare function interruptedReader(thinking: Thinking, unit: Unit): StageReader;
