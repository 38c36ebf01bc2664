import type { ToolDefinition } from '../../message.ts';
import type { Unit } from '../blocks.ts';
/**
 * Cline's tags: `<tool_name><key>text</key>…</tool_name>`, every value text without its edges.
 * No marker introduces them, so a broken one counts as a call only if it names an offered tool.
 */
export declare function clineUnit(schemas: readonly ToolDefinition[]): Unit;
