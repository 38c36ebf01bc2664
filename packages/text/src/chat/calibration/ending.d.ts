import { type CallMark, type Probe } from './probe.ts';
/** How a turn ends once something follows it. */
export interface Ending {
    /** What stands between the turn's last word and the control string that ends it. */
    readonly tail: string;
    /** The control string that ends the turn; '' where none does. */
    readonly stop: string;
    /** The one that a sample ends with: not `stop` where the template rewrites it. */
    readonly sampledStop: string;
    /** Whether `stop` already opens the message that follows, as in GLM's templates. */
    readonly isOpening: boolean;
}
/** How a turn that calls ends, and the mark by which its last word is found. */
export interface CallEnding extends Ending {
    readonly mark: CallMark;
    /** How one that makes several calls ends. */
    readonly several: Ending;
}
/** How a turn that only speaks ends; undefined where the template refuses to show one. */
export declare function findSpokenEnding(probe: Probe): Ending | undefined;
/** How turns that call end; undefined where the template shows neither their calls nor their words. */
export declare function findCallEnding(probe: Probe, spoken: Ending): CallEnding | undefined;
/** The word by which the end of a calling turn is found. */
export declare function markOf(mark: CallMark): string;
/** A place in a text, moved back to the beginning of the control string it lies within. */
export declare function snap(text: string, at: number, controls: readonly string[]): number;
