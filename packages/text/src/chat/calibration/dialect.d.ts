import type { Chat } from '../chat.ts';
/** The shape in which a template expects the OpenAI schema's fields; published templates disagree. */
export interface Dialect {
    /** The arguments of a call: a dict, or the JSON text itself. */
    readonly arguments: 'dict' | 'text';
    /** The content of a turn that only calls: an empty string, or `None`. */
    readonly emptyContent: 'text' | 'none';
    /** The field that holds the reasoning. */
    readonly reasoning: 'reasoning_content' | 'thinking';
    /** The thoughts of a turn that speaks and calls: beside its words, or before them in one text. */
    readonly thoughts: 'beside' | 'joined';
    /** Content in parts: as the list it is, or as one text. */
    readonly parts: 'list' | 'text';
}
/** What transformers' documentation tells authors of templates to expect. */
export declare const plainDialect: Dialect;
/** Finds the shape in which a template shows calls, reasoning and parts, by trying. */
export declare function findDialect(open: (dialect: Dialect) => Chat): Dialect;
