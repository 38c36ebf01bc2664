import { type ToolReading } from '../format.ts';
/** Formats whose arguments are raw text in tags, Python, or a notation of their own. */
export declare const tagFormats: {
    /** Cline and its kin: a tag named after the tool around tags named after the parameters. */
    cline: ToolReading;
    /** DeepSeek V3.2: tags that say themselves which values are text. */
    deepseekv32: ToolReading;
    /** DeepSeek V4: as V3.2 with another outer tag. */
    deepseekv4: ToolReading;
    /** dots: tags around raw values, or a JSON object. */
    dots: ToolReading;
    /** Gemma 4: a notation of its own, strings between quotation tokens. */
    gemma4: ToolReading;
    /** GLM-4.5 and 4.6: the name, then tagged keys and values on lines. */
    glm45: ToolReading;
    /** GLM-4.7 and 5: as 4.5 without lines. */
    glm47: ToolReading;
    /** Either of Qwen's two ways between the same tags. */
    hermes_qwen: ToolReading;
    /** Hunyuan (Hy3): GLM's pairs, with a section around them and a mark behind the name. */
    hunyuan: ToolReading;
    /** Kimi K3: channels, tags made of control tokens, typed arguments. */
    kimi_k3: ToolReading;
    /** LFM2: a Python list of calls, or a JSON one, between tags. */
    lfm2: ToolReading;
    /** MiMo: Qwen3-Coder's tags, values without lines. */
    mimo: ToolReading;
    /** MiniCPM5: tags around values that are escaped as XML. */
    minicpm5: ToolReading;
    /** MiniMax-M2: tags around raw values. */
    'minimax-m2': ToolReading;
    /** MiniMax-M3: tags named after the parameters, nested as the values are. */
    'minimax-m3': ToolReading;
    /** Muse: tags in messages with a recipient. */
    muse: ToolReading;
    /** Laguna: GLM's pairs. */
    poolside_v1: ToolReading;
    /** Llama 4 and others: a Python list of calls in plain text. */
    pythonic: ToolReading;
    /** Qwen3-Coder, Qwen3.5, Step-3.5, Nemotron 3: tags around raw values on lines. */
    qwen3_coder: ToolReading;
    /** Step3: tags in a section of control tokens. */
    step3: ToolReading;
};
