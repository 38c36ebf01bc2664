import type { Value } from './value.ts';
/** What a template is given: by name, as values of templates or as plain JavaScript data. */
export type GivenVariables = ReadonlyMap<string, Value> | Readonly<Record<string, unknown>>;
/** The variables of one rendering. Each becomes a value of templates when it is first asked for. */
export declare class Variables {
    #private;
    /** Whether any value asked for so far holds characters from outside. */
    foreign: boolean;
    constructor(given: GivenVariables);
    /** The value of a name that was given one or that every template knows. */
    get(name: string): Value | undefined;
    /** Tells of a value that has no plain form whether it may stay, and notes where it came from. */
    keep(value: object): boolean;
}
