import type { Message } from '../message.ts';
import type { BridgeRequest } from '../renderer.ts';
import type { Tokenizer } from '../tokenizers/tokenizer.ts';
import type { Profile } from './calibration/calibration.ts';
import { type Ending } from './calibration/ending.ts';
import type { Chat, ChatText } from './chat.ts';
/** What computing a bridge needs. */
export interface BridgeContext {
    readonly chat: Chat;
    readonly profile: Profile;
    readonly tokenizer: Tokenizer;
    /** The ids that end an assistant turn. */
    readonly stopIds: readonly number[];
}
/** The synthetic turn behind which a bridge is computed, and how its end is found. */
export interface Anchor {
    readonly before: readonly Message[];
    readonly mark: string;
    /** What belongs to the turn behind its mark. */
    readonly tail: string;
    readonly ending: Ending;
}
/** The tokens that follow a sampled turn: what it sampled itself is neither repeated nor left out. */
export declare function bridgeIds(context: BridgeContext, request: BridgeRequest): Int32Array;
/** The messages that a bridge leads over. */
export declare function observedOf({ messages, observed }: BridgeRequest): readonly Message[];
/** A bridge without the stop token at its beginning, if the policy has sampled that itself. */
export declare function withoutSampled({ tokenizer, stopIds }: BridgeContext, { path, turnStart }: BridgeRequest, { ids, ending }: {
    readonly ids: Int32Array;
    readonly ending: Ending;
}): Int32Array;
/** Where the turn ends whose mark is at this place of a text; undefined if the mark belongs to another turn. */
export declare function endOf(text: string, at: number, { mark, tail, ending }: Anchor): number | undefined;
/** The synthetic turn before these observations. */
export declare function anchorOf(profile: Profile, observed: readonly Message[], { messages }: BridgeRequest): Anchor;
/** Where no control token ends a turn, the policy may have sampled white space of the bridge; it is not written twice. */
export declare function encodeBehindText({ tokenizer }: BridgeContext, { path, turnStart }: BridgeRequest, { text, foreign }: ChatText): Int32Array;
/** Tokens one after the other. */
export declare function concat(...parts: readonly Int32Array[]): Int32Array;
