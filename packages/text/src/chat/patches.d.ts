/** A change to a published template that mends a defect of it. */
export interface TemplatePatch {
    readonly name: string;
    /** What goes wrong without it. */
    readonly reason: string;
    /** The passage as it is published, however indented; a template without it is left alone. */
    readonly find: readonly string[];
    readonly replace: readonly string[];
}
/** Every patch that is applied by default, in order. */
export declare const templatePatches: readonly TemplatePatch[];
/** A template with every patch that fits it, and the patches that did. */
export declare function patchTemplate(source: string, patches?: readonly TemplatePatch[]): {
    readonly source: string;
    readonly applied: readonly TemplatePatch[];
};
