/** A place in a template's source, counted from one. */
export interface SourcePlace {
    readonly line: number;
    readonly column: number;
}
/** The line and column of an offset. */
export declare function placeOf(source: string, offset: number): SourcePlace;
/** A template that Jinja would not compile. */
export declare class TemplateSyntaxError extends Error {
    name: string;
    readonly line: number;
    readonly column: number;
    constructor(problem: string, source: string, offset: number);
}
/** A rendering that raised; `type` names the exception that Python would have raised. */
export declare class TemplateError extends Error {
    name: string;
    readonly type: string;
    /** What was raised, without the place. */
    readonly problem: string;
    readonly line: number;
    readonly column: number;
    constructor(type: string, problem: string, place: SourcePlace & {
        readonly cause?: unknown;
    });
}
