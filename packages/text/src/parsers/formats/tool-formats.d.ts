import type { ToolReading } from '../format.ts';
/**
 * Every format of tool calls. Names are those under which the servers that parse them
 * (SGLang, vLLM, twinkle) know them; each says which models write so.
 */
declare const formats: {
    apertus2509: ToolReading;
    cohere_command4: ToolReading;
    deepseekv3: ToolReading;
    deepseekv31: ToolReading;
    gigachat3: ToolReading;
    'gpt-oss': {
        kind: "reader";
        reader: import("../blocks.ts").StageReader;
    };
    hermes: ToolReading;
    inkling: ToolReading;
    interns1: ToolReading;
    kimi_k2: ToolReading;
    llama3: ToolReading;
    mistral: ToolReading;
    mistral_compact: ToolReading;
    qwen25: ToolReading;
    trinity: ToolReading;
    cline: ToolReading;
    deepseekv32: ToolReading;
    deepseekv4: ToolReading;
    dots: ToolReading;
    gemma4: ToolReading;
    glm45: ToolReading;
    glm47: ToolReading;
    hermes_qwen: ToolReading;
    hunyuan: ToolReading;
    kimi_k3: ToolReading;
    lfm2: ToolReading;
    mimo: ToolReading;
    minicpm5: ToolReading;
    'minimax-m2': ToolReading;
    'minimax-m3': ToolReading;
    muse: ToolReading;
    poolside_v1: ToolReading;
    pythonic: ToolReading;
    qwen3_coder: ToolReading;
    step3: ToolReading;
};
/** The name of a format of tool calls. */
export type ToolFormat = keyof typeof formats;
/** How to read each format. */
export declare const toolReadings: Readonly<Record<ToolFormat, ToolReading>>;
export {};
