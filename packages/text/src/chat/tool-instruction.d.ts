/** A sentence of a chat template and what to say instead. */
export interface ToolInstruction {
    /** The sentence as the template has it, between quotes. */
    readonly find: string;
    readonly replace: string;
}
/** A template that offers tools in other words; one that has no such sentence is refused. */
export declare function replaceToolInstruction(source: string, { find, replace }: ToolInstruction): string;
