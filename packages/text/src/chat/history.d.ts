import type { Bridge, BridgeRequest } from '../renderer.ts';
import type { BridgeContext } from './bridge.ts';
/**
 * The bridge of a history kept as the template would write it now: where that differs from what
 * the policy saw and sampled, a new path begins at the first token that changed.
 */
export declare function faithfulBridge(context: BridgeContext, request: BridgeRequest): Bridge;
