import type { Profile } from './calibration.ts';
import type { CallEnding } from './ending.ts';
import { type Probe } from './probe.ts';
/** What `findLimits` reads. */
export interface LimitSources extends Pick<Profile, 'toolResults' | 'offersTools' | 'needsTools' | 'stops'> {
    readonly called: CallEnding | undefined;
}
/** What a template cannot serve, in words; none of it makes tokens inexact. */
export declare function findLimits(probe: Probe, sources: LimitSources): readonly string[];
/** Whether a conversation may begin with a system message. */
export declare function takesSystem(probe: Probe): boolean;
