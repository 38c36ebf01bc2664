import { type ToolReading } from '../format.ts';
/** Formats whose arguments are JSON, so that markers within strings can be told from markers. */
export declare const jsonFormats: {
    /** Apertus: a JSON list of objects, each with the tool's name as its only key. */
    apertus2509: ToolReading;
    /** Command A and its successors: a JSON list of calls with ids; the answer has its own tags. */
    cohere_command4: ToolReading;
    /** DeepSeek V3 and R1: the name, then JSON in a code fence. */
    deepseekv3: ToolReading;
    /** DeepSeek V3.1: the name, then JSON. */
    deepseekv31: ToolReading;
    /** GigaChat 3: one JSON object behind a marker. */
    gigachat3: ToolReading;
    /** gpt-oss: a message with a recipient. */
    'gpt-oss': {
        kind: "reader";
        reader: import("../blocks.ts").StageReader;
    };
    /** Hermes: JSON between tags, one object or a list. */
    hermes: ToolReading;
    /** Inkling: a message of the tool's name and JSON. */
    inkling: ToolReading;
    /** InternLM and Intern-S1: JSON behind a plugin marker. */
    interns1: ToolReading;
    /** Kimi K2: an id with the name in it, then JSON. */
    kimi_k2: ToolReading;
    /** Llama 3: JSON objects behind a marker, or as the whole output. */
    llama3: ToolReading;
    /** Mistral until 3.1: a JSON list behind a marker. */
    mistral: ToolReading;
    /** Mistral since: a name and JSON behind markers. */
    mistral_compact: ToolReading;
    /** Qwen2.5 and Qwen3: JSON between tags. */
    qwen25: ToolReading;
    /** Trinity: as Qwen2.5. */
    trinity: ToolReading;
};
