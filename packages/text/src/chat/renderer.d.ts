import { type Markers, type ReasoningFormat, type ToolFormat } from '../parsers/parser.ts';
import type { History, Renderer } from '../renderer.ts';
import { type Tokenizer } from '../tokenizers/tokenizer.ts';
import { type Profile } from './calibration/calibration.ts';
import { type Chat } from './chat.ts';
import type { ModelFiles } from './model-folder.ts';
import { type TemplatePatch } from './patches.ts';
import { type Formats } from './reply.ts';
import { type ToolInstruction } from './tool-instruction.ts';
/** How a model folder is used. */
export interface RendererOptions {
    /** @default 'preserve' */
    readonly history?: History;
    /** Values the chat template may ask for, such as `enable_thinking`. */
    readonly templateVariables?: Readonly<Record<string, unknown>>;
    /** Replaces the sentence in which the template offers tools. */
    readonly toolInstruction?: ToolInstruction;
    /** How the model writes calls. @default found from the template */
    readonly toolFormat?: ToolFormat;
    /** How the model writes reasoning. @default found from the template */
    readonly reasoningFormat?: ReasoningFormat;
    /**
     * Whether a marker that the model spells out in ordinary tokens counts as one, as it does for
     * servers that parse text, or only the control token itself. @default 'text'
     */
    readonly markers?: Markers;
    /**
     * Whether contexts and bridges of one kind are filled into a shape that the template rendered once.
     * `false`: the template renders each one; slower, with the same tokens, for debugging. @default true
     */
    readonly shapes?: boolean;
    /** Whether known defects of published templates are mended. @default true */
    readonly patch?: boolean;
    /** Strings to treat as control tokens though the tokenizer does not name them. */
    readonly extraSpecialTokens?: readonly string[];
    /** A tokenizer that is already open, so that a folder's own need not be opened. */
    readonly tokenizer?: Tokenizer;
    /** The date that templates write. */
    readonly clock: () => Date;
}
/**
 * A renderer made from a model folder, with what was found out about it. The ids that `render` gives
 * are shared by all who render the same context: nobody may write to them.
 */
export interface ModelRenderer extends Renderer {
    readonly tokenizer: Tokenizer;
    readonly profile: Profile;
    readonly chat: Chat;
    readonly formats: Formats;
    readonly patches: readonly TemplatePatch[];
    /** The same border with another way to treat what the template rewrites. */
    withHistory(history: History): ModelRenderer;
}
/** Opens the border between messages and tokens for a model folder; its template is probed once. */
export declare function createRenderer(files: ModelFiles, options: RendererOptions): ModelRenderer;
