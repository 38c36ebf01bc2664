import type { ToolDefinition } from '../../message.ts';
import { type Unit } from '../blocks.ts';
/** Calls written as a Python list: `[NAME(key=value, …), …]`, or as a JSON list of objects. */
export interface PythonUnit {
    /** Markers around the list. Without them a bracket in plain text may open one. */
    readonly wrap?: {
        readonly open: string;
        readonly close: string;
    };
}
/** Python calls. Without markers, a broken one counts as a call only if it names an offered tool. */
export declare function pythonUnit({ wrap }: PythonUnit, schemas: readonly ToolDefinition[]): Unit;
