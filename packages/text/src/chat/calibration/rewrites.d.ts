import { type CallEnding, type Ending } from './ending.ts';
import { type Probe } from './probe.ts';
/** A way in which a template does not show history as it was seen and sampled. */
export interface Rewrite {
    readonly kind: 'thinking' | 'opening' | 'empty-thinking' | 'closing' | 'turn' | 'earlier';
    /** What the template does, and when. */
    readonly change: string;
    /** What a policy goes on seeing where history is preserved, and a chat endpoint would not show. */
    readonly preserved: string;
}
/** How turns end; needed to describe a closing that changed. */
interface Endings {
    readonly spoken: Ending | undefined;
    readonly called: CallEnding | undefined;
}
/** Finds what a template rewrites, by comparing renderings before and after each kind of message. */
export declare function findRewrites(probe: Probe, endings: Endings): readonly Rewrite[];
export {};
