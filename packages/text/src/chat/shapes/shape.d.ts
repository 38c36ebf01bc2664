import type { Condition, Hole } from '../../jinja/hidden.ts';
import type { Message, ToolDefinition } from '../../message.ts';
import { type Chat, type TimedText } from '../chat.ts';
/** What a template made of messages without seeing their contents, and for which contents. */
export interface Shape<Form> {
    readonly conditions: readonly Condition[];
    readonly moments: TimedText['moments'];
    /** Where contents are filled in. */
    readonly holes: readonly Hole[];
    /** What contents are filled into; undefined where the template has to see such contents. */
    readonly form: Form | undefined;
}
/** A form, and the contents to be filled into it. */
export interface Fit<Form> {
    readonly form: Form;
    readonly moments: TimedText['moments'];
    readonly texts: readonly string[];
}
/** How shapes are made. */
export interface ShapeOptions<Request, Form> {
    readonly chat: Chat;
    /** Whether they differ by the tools of a request. */
    readonly needsTools: boolean;
    make(request: Request): Shape<Form>;
}
/**
 * Finds the form into which the contents of a request's messages can be filled, and makes it where
 * it is the first of its kind; undefined where a request has to be rendered by itself.
 */
export declare function openShapes<Request extends {
    readonly tools: readonly ToolDefinition[];
}, Form>(options: ShapeOptions<Request, Form>): (request: Request, messages: readonly Message[]) => Fit<Form> | undefined;
