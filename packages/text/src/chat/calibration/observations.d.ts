import type { Profile } from './calibration.ts';
import { type CallEnding } from './ending.ts';
import { type Probe } from './probe.ts';
/** How several tool results in a row are written; `unsupported` where not even one is. */
export declare function groupingOf(probe: Probe, { mark }: CallEnding): Profile['toolResults'];
/** Whether the text between two turns changes with the tools on offer, or with what came earlier. */
export declare function findBridgeNeeds(probe: Probe, found: {
    readonly called: CallEnding | undefined;
    readonly needsTools: boolean;
}): Profile['bridgeNeeds'];
