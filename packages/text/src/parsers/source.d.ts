import type { Markers } from './markers.ts';
/** Something that parses, mostly a coroutine. It yields where it needs text that has not arrived. */
export interface Reader<Result> extends Iterator<undefined, Result, undefined> {
    [Symbol.iterator](): Reader<Result>;
}
/** A reader whose result is known at once, so that no coroutine is needed. */
export declare class Known<Result> {
    readonly done = true;
    readonly value: Result;
    constructor(value: Result);
    next(): this;
    [Symbol.iterator](): this;
}
/** Text that is being read, as it is consumed. */
export interface Collector {
    /** What was consumed so far since the collector was opened. */
    text(): string;
    close(): void;
    /**
     * Gives back everything that was consumed since; this collector and all later ones are closed.
     * Returns false, and gives nothing back, once too much was read again: hostile text then costs
     * precision, never more than linear time.
     */
    giveBack(): boolean;
}
/**
 * Text that grows while coroutines read it. Only what nobody has read yet is kept, so a stream of
 * many small pieces costs time in proportion to its length.
 *
 * `vocabulary` holds the control strings of the model's vocabulary where the text was made from
 * token ids: a marker made of such strings then counts only where they arrived as control tokens.
 */
export declare class Source {
    #private;
    constructor(vocabulary?: readonly string[]);
    /** How many characters were consumed. */
    get position(): number;
    /** Whether everything has arrived and been consumed. */
    get finished(): boolean;
    push(text: string, control: boolean): void;
    end(): void;
    /** Waits for more text; false when there will be none. */
    more(): Reader<boolean>;
    /** Calls `answer` now, and whenever text has arrived, until it gives a result; at the end it must. */
    when<Result>(answer: () => Reader<Result> | undefined): Reader<Result>;
    /** What is ahead, at least `count` characters of it unless the text ends. Consumes nothing. */
    ahead(count: number): Reader<string>;
    skip(count: number): void;
    /** Consumes what has arrived up to the pattern's first match (all of it if none): the match's text. */
    skipTo(pattern: RegExp): string | undefined;
    /** Consumes what a scanner reads of the text that has arrived. */
    feed(scanner: {
        read(text: string, from: number, ended: boolean): number;
    }): void;
    /** Consumes what the sticky pattern matches here; it should match a bounded length. */
    match(pattern: RegExp): Reader<string>;
    /** Consumes spaces, tabs and line breaks. */
    spaces(): Reader<void>;
    /** Consumes the marker if it stands here; waits only while it still may. */
    take(marker: string): Reader<boolean>;
    /** Whether the marker stands here; waits only while it still may. */
    next(marker: string): Reader<boolean>;
    /** Consumes text up to one of the markers, which stays: the marker, or undefined at the end. */
    until(set: Markers, emit?: (text: string, start: number) => void): Reader<string | undefined>;
    /** The text up to one of the markers if one is at most `limit` characters ahead; consumes it. */
    near(set: Markers, limit?: number): Reader<{
        text: string;
        marker: string;
    } | undefined>;
    /** As `near`, from `from` characters ahead on; consumes nothing. */
    spot(set: Markers, { limit, from }?: {
        limit?: number;
        from?: number;
    }): Reader<{
        text: string;
        marker: string;
    } | undefined>;
    collect(): Collector;
    /** The control tokens between two positions, in order. */
    controls(from: number, to: number): readonly (readonly [number, number])[];
}
