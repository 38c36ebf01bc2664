import type { BridgeRequest } from '../../renderer.ts';
import { type BridgeContext } from '../bridge.ts';
/**
 * Computes bridges. Those of one kind (the same roles, tools and calls) differ by the observed
 * contents only, so the template renders one of them, without seeing the contents, and the others
 * are filled in. They are what `bridgeIds` gives, token by token.
 */
export declare function openBridges(context: BridgeContext): (request: BridgeRequest) => Int32Array;
