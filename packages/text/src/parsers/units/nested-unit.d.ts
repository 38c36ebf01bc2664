import type { ToolDefinition } from '../../message.ts';
import type { Unit } from '../blocks.ts';
/** Tags named after the parameters; objects are nested tags, lists are tags named `item`. */
export declare function nestedUnit(schemas: readonly ToolDefinition[]): Unit;
