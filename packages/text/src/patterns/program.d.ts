import type { Edge, Part } from './syntax.ts';
/** One thing to do at a place of a text. */
export type Instruction = {
    readonly do: 'take';
    readonly accepts: (point: number) => boolean;
}
/** Goes on at `first`, and if that fails at `second`; `number` counts the forks. */
 | {
    readonly do: 'fork';
    first: number;
    second: number;
    readonly number: number;
} | {
    readonly do: 'jump';
    to: number;
} | {
    readonly do: 'look';
    readonly program: Program;
    readonly isNegated: boolean;
} | {
    readonly do: 'atomic';
    readonly program: Program;
} | {
    readonly do: 'edge';
    readonly of: Edge;
} | {
    readonly do: 'end';
};
/** A part as instructions, one after another. */
export interface Program {
    readonly instructions: readonly Instruction[];
    readonly forks: number;
    /** Whether it reads from right to left, as lookbehinds do. */
    readonly isBackward: boolean;
    /** What is remembered about a place where it matched. */
    readonly keeps: 'nothing' | 'success' | 'end';
}
/** A pattern that is too large. */
export declare class LargePatternError extends Error {
    name: string;
}
/** Writes a part as a program. */
export declare function compilePart(part: Part): Program;
