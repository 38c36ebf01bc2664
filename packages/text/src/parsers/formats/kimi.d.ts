import type { ToolDefinition } from '../../message.ts';
import { type Broken } from '../call.ts';
import type { ParsedCall } from '../parser.ts';
/** A call from its id and arguments. If the id is a bare counter, the arguments must identify the tool. */
export declare function kimiCall(head: string, object: string, schemas: readonly ToolDefinition[]): ParsedCall | Broken;
