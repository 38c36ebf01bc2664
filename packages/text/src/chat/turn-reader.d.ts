import type { ToolDefinition } from '../message.ts';
import type { TurnReader } from '../renderer.ts';
import { type ReplyContext } from './reply.ts';
/** Opens readers of turns that are still being sampled. */
export declare function openTurnReaders(context: ReplyContext): (tools: readonly ToolDefinition[]) => TurnReader;
