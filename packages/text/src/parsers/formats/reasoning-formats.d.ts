import type { StageReader } from '../blocks.ts';
import { type FormatContext } from '../format.ts';
import type { Thinking } from '../thinking.ts';
/** What a format of reasoning may look at. */
export interface ReasoningContext extends FormatContext {
    /** Whether the prompt opened a thinking block; undefined if nobody said. */
    readonly inside: boolean | undefined;
    /** Whether calls are read afterwards. */
    readonly readsCalls: boolean;
}
/** How reasoning is written: tags in text, or a whole output of its own kind. */
export type ReasoningReading = {
    readonly kind: 'tags';
    readonly thinking: (context: ReasoningContext) => Thinking;
} | {
    readonly kind: 'reader';
    readonly reader: (context: ReasoningContext) => StageReader;
};
/**
 * Every format of reasoning. Names are those under which servers that parse them (SGLang) know
 * them; where two models differ only in whether the prompt opens the block, that is all that
 * differs here.
 */
declare const formats: {
    /** Apertus: blocks that calls may interrupt. */
    apertus2509: ReasoningReading;
    /** Command A and its successors: a channel of thinking before the one of the answer. */
    cohere_command4: ReasoningReading;
    /** DeepSeek R1: the output begins within thinking. */
    'deepseek-r1': ReasoningReading;
    /** DeepSeek V3: thinking if asked for. */
    'deepseek-v3': ReasoningReading;
    /** DeepSeek V4: thinking if asked for, ended by a call. */
    'deepseek-v4': ReasoningReading;
    /** Gemma 4: a channel named thought. */
    gemma4: ReasoningReading;
    /** GLM-4.5 and later. */
    glm45: ReasoningReading;
    /** gpt-oss: the analysis channel. */
    'gpt-oss': ReasoningReading;
    /** Hunyuan (Hy3). */
    hunyuan: ReasoningReading;
    /** Inkling: messages of thoughts. */
    inkling: ReasoningReading;
    /** Intern-S1. */
    interns1: ReasoningReading;
    /** Kimi before K2: triangles for brackets. */
    kimi: ReasoningReading;
    /** Kimi K2. */
    kimi_k2: ReasoningReading;
    /** Kimi K3: a channel of thinking, which any other channel ends. */
    kimi_k3: ReasoningReading;
    /** MiMo. */
    mimo: ReasoningReading;
    /** MiniMax-M1 and M2: the output begins within thinking. */
    minimax: ReasoningReading;
    /** MiniMax-M2 for consumers that keep thinking in the content: its opening tag is put back. */
    'minimax-append-think': ReasoningReading;
    /** MiniMax-M3. */
    'minimax-m3': ReasoningReading;
    /** Magistral and later Mistral models. */
    mistral: ReasoningReading;
    /** Nemotron 3. */
    nemotron_3: ReasoningReading;
    /** Qwen3: thinking if asked for, ended by a call. */
    qwen3: ReasoningReading;
    /** Qwen3 models that always think: the prompt opens the block. */
    'qwen3-thinking': ReasoningReading;
    /** Step3: the output begins within thinking. */
    step3: ReasoningReading;
};
/** The name of a format of reasoning. */
export type ReasoningFormat = keyof typeof formats;
/** How to read each format. */
export declare const reasoningReadings: Readonly<Record<ReasoningFormat, ReasoningReading>>;
export {};
