/** What a Hugging Face model folder says about its tokenizer and its chat template. */
export interface ModelFiles {
    /** The folder's name, for people. */
    readonly name: string;
    /** `tokenizer.json`, parsed. */
    readonly tokenizer: unknown;
    /** `tokenizer_config.json`, parsed; empty where there is none. */
    readonly config: Readonly<Record<string, unknown>>;
    readonly template: string;
    /** The template to use where tools are offered, if the folder has one of its own for that. */
    readonly toolTemplate?: string;
    /** Ids that end a generation, by `generation_config.json`. */
    readonly endIds: readonly number[];
}
/** The files of a model folder that rendering needs; the first is the only one that must be there. */
export declare const modelFileNames: readonly ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja', 'chat_template.json', 'generation_config.json'];
/** Reads a model folder as Hugging Face publishes it; a folder with `models/` inside is read there. */
export declare function readModelFolder(path: string): Promise<ModelFiles>;
