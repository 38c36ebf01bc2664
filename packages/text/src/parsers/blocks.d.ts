import { type Broken } from './call.ts';
import type { ParsedCall } from './parser.ts';
import type { Reader, Source } from './source.ts';
import { type Thinking } from './thinking.ts';
/** What a reader found where a call may begin; `text` if it is no attempt at a call at all. */
export type UnitResult = {
    readonly kind: 'calls';
    readonly calls: readonly ParsedCall[];
} | {
    readonly kind: 'text';
} | Broken;
/** Where a reader puts what it finds. */
export interface Sink {
    content(text: string, start: number): void;
    reasoning(text: string): void;
    call(call: ParsedCall): void;
}
/** One way of writing a call. */
export interface Unit {
    /** What a call begins with. */
    readonly opens: readonly string[];
    /** What a call ends with: a broken one is kept up to and with the first of these. */
    readonly closes: readonly string[];
    /** Openings that are too common to end a broken call before them. */
    readonly weak?: readonly string[];
    /** Reads a call from its first character on; what it consumes of a broken one is given back. */
    read(source: Source): Reader<UnitResult>;
}
/** A format of calls between other text. */
export interface Blocks {
    readonly unit?: Unit;
    /** Markers around any number of calls. */
    readonly section?: {
        readonly open: string;
        readonly close: string;
    };
    /** A way of writing calls that counts only where the message begins. */
    readonly opening?: Unit;
    /** Framing that is not part of the message's text. */
    readonly framing?: readonly string[];
    /** Framing with variable text in it. */
    readonly header?: Header;
}
interface Header {
    readonly open: string;
    readonly end: string;
    /** What a turn begins with whose prompt ends within the header. */
    readonly rest: string;
}
/** Puts what it reads into the sink. */
export type StageReader = (source: Source, sink: Sink) => Reader<void>;
/** Reads text with blocks of calls and of thinking in it. */
export declare function blockReader(format: Blocks, thinking?: Thinking): StageReader;
/** Reads one call where a call may begin, and keeps what breaks as malformed. */
export declare function attemptReader(unit: Unit, fences?: readonly string[]): StageReader;
/** Reads one call where a call may begin, and passes its text on as content. */
export declare function rawAttemptReader(unit: Unit, fences?: readonly string[]): StageReader;
/** Which of the strings stands here. */
export declare function standsHere(source: Source, strings: readonly string[]): Reader<string | undefined>;
/** Takes the closing marker of a call, or says why it is not there. */
export declare function closing(source: Source, close: string): Reader<Broken | undefined>;
export {};
