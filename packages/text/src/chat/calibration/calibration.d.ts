import type { ControlToken } from '../../tokenizers/tokenizer.ts';
import type { Chat } from '../chat.ts';
import { type CallEnding, type Ending } from './ending.ts';
import { type Rewrite } from './rewrites.ts';
/** What probing a chat template with synthetic conversations found out. */
export interface Profile {
    /** The text that opens the policy's turn; '' if the message before it already does. */
    readonly generationPrompt: string;
    /** Whether a policy begins its turn within a thinking block. */
    readonly opensThinking: boolean;
    /** The white space that the template puts before the words of a turn. */
    readonly lead: string;
    /** What stands around the thinking of a turn; undefined where history shows none. */
    readonly thinking: ThinkingBorders | undefined;
    /** How a turn that only speaks ends. */
    readonly spoken: Ending;
    /** How a turn that calls ends; undefined where the template shows no such turn. */
    readonly called: CallEnding | undefined;
    /** The control strings at which a sample stops. */
    readonly stops: readonly string[];
    /** What stands between the end of a turn and the next message. */
    readonly separator: string;
    /**
     * Whether tokens can merge with their neighbours where a turn begins and where it ends: a control
     * token never does, so that a re-encoding of the text gives the same tokens there.
     */
    readonly borders: {
        readonly opening: Border;
        readonly closing: Border;
    };
    /** Whether a conversation may begin with a system message. */
    readonly takesSystem: boolean;
    /** Whether tools on offer are shown to the policy. */
    readonly offersTools: boolean;
    /** Whether the template refuses conversations without tools. */
    readonly needsTools: boolean;
    /** How several tool results in a row are written. */
    readonly toolResults: 'grouped' | 'separate' | 'single' | 'unsupported';
    /** What changes the tokens between two turns besides the messages there. */
    readonly bridgeNeeds: {
        readonly tools: boolean;
        readonly history: boolean;
    };
    /** Where the template does not show history as it was seen and sampled. */
    readonly rewrites: readonly Rewrite[];
    /** What this template cannot serve, in words. */
    readonly limits: readonly string[];
    /** What defeats exact tokens, in words. */
    readonly problems: readonly string[];
}
/** How a template sets thinking apart from what follows it. */
export interface ThinkingBorders {
    /** The white space before the first thought. */
    readonly lead: string;
    /** What stands between the last thought and the first word. */
    readonly end: string;
}
/** Where tokens meet: at a control token, or in the middle of text. */
export type Border = 'control' | 'text';
/** What calibration needs besides the template. */
export interface CalibrationOptions {
    readonly controls: readonly ControlToken[];
    /** Whether a text after this one would be thinking, as the model's reasoning format reads it. */
    readonly endsInThinking: (text: string) => boolean;
}
/** Probes a template. */
export declare function calibrate(chat: Chat, options: CalibrationOptions): Profile;
