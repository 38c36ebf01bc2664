import type { RunFrame } from '../frame.ts';
import type { MacroBody } from '../parse/syntax.ts';
import { TemplateObject } from '../value.ts';
import type { CompilePlace } from './place.ts';
/** Compiles a macro or the body of a call block; the result makes the macro in a frame. */
export declare function compileMacro(place: CompilePlace, node: MacroBody & {
    readonly name?: string;
    readonly at: number;
}): (frame: RunFrame) => TemplateObject;
