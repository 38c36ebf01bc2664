import type { Message, ToolDefinition } from '../../message.ts';
import type { Tokenizer } from '../../tokenizers/tokenizer.ts';
import type { Chat } from '../chat.ts';
/**
 * Renders contexts. The attempts of a group all begin with the same one, so the last ones are kept;
 * the ids are shared by all who asked for them and must not be written to.
 */
export declare function openOpenings(chat: Chat, tokenizer: Tokenizer): (messages: readonly Message[], tools: readonly ToolDefinition[]) => Int32Array;
