import type { ReasoningFormat } from './reasoning-formats.ts'
import type { ToolFormat } from './tool-formats.ts'

/** A format and what a template that speaks it contains: every one of these strings. */
interface Signs<Format> {
  readonly format: Format
  readonly all: readonly string[]
  /** Strings that tell it from a format with the same signs. */
  readonly none?: readonly string[]
}

/** Signs of tool formats, the most telling first: the first that fits is taken. */
const toolSigns: readonly Signs<ToolFormat>[] = [
  { format: 'gpt-oss', all: ['<|channel|>', 'commentary'] },
  { format: 'inkling', all: ['<|content_invoke_tool_json|>'] },
  { format: 'kimi_k3', all: ['<|open|>', '<|close|>', 'tools'] },
  { format: 'kimi_k2', all: ['<|tool_call_argument_begin|>'] },
  { format: 'deepseekv4', all: ['DSML', 'tool_calls'], none: ['function_calls>'] },
  { format: 'deepseekv32', all: ['DSML', 'function_calls'] },
  { format: 'deepseekv3', all: ['<｜tool▁calls▁begin｜>', '```json'] },
  { format: 'deepseekv31', all: ['<｜tool▁calls▁begin｜>'] },
  { format: 'step3', all: ['<｜tool_calls_begin｜>'] },
  { format: 'minimax-m3', all: [']<]minimax[>['] },
  { format: 'minimax-m2', all: ['<minimax:tool_call>'] },
  { format: 'hunyuan', all: ['<tool_calls', '<arg_key'] },
  { format: 'poolside_v1', all: ['<arg_key>', '<assistant>'] },
  { format: 'glm45', all: ['<arg_key>', '</arg_key>\n<arg_value>'] },
  { format: 'glm47', all: ['<arg_key>'] },
  { format: 'minicpm5', all: ['<function name=', '<param name='] },
  { format: 'muse', all: ['atem:invoke'] },
  { format: 'qwen3_coder', all: ['<function=', '<parameter='] },
  { format: 'gemma4', all: ['<|tool_call>', 'call:'] },
  { format: 'lfm2', all: ['<|tool_call_start|>'] },
  { format: 'cohere_command4', all: ['<|START_ACTION|>'] },
  { format: 'apertus2509', all: ['<|tools_prefix|>'] },
  { format: 'gigachat3', all: ['function call<|role_sep|>'] },
  { format: 'gigachat3', all: ['<|function_call|>'] },
  { format: 'interns1', all: ['<|action_start|>'] },
  { format: 'mistral_compact', all: ['[TOOL_CALLS]', '[ARGS]'] },
  { format: 'mistral', all: ['[TOOL_CALLS]'] },
  { format: 'llama3', all: ['<|python_tag|>'] },
  { format: 'llama3', all: ['<|eot_id|>', '"parameters": '] },
  { format: 'qwen25', all: ['<tool_call>', '<|im_start|>'] },
  { format: 'hermes', all: ['<tool_call>'] },
]

/** Signs of reasoning formats, the most telling first. */
const reasoningSigns: readonly Signs<ReasoningFormat>[] = [
  { format: 'gpt-oss', all: ['<|channel|>', 'analysis'] },
  { format: 'inkling', all: ['<|content_invoke_tool_json|>'] },
  { format: 'kimi_k3', all: ['<|open|>', '<|close|>'] },
  { format: 'kimi', all: ['◁think▷'] },
  { format: 'kimi_k2', all: ['<|tool_call_argument_begin|>', '<think>'] },
  { format: 'gemma4', all: ['<|channel>'] },
  { format: 'apertus2509', all: ['<|inner_prefix|>'] },
  { format: 'cohere_command4', all: ['<|START_THINKING|>'] },
  { format: 'mistral', all: ['[THINK]'] },
  { format: 'hunyuan', all: ['<think', '<tool_calls', '<arg_key'] },
  { format: 'deepseek-v4', all: ['DSML', '<think>'] },
  { format: 'deepseek-v3', all: ['<｜tool▁calls▁begin｜>', '<think>', 'thinking'] },
  { format: 'minimax-m3', all: [']<]minimax[>[', 'think>'] },
  { format: 'minimax', all: [']~b]ai', '<think>'] },
  { format: 'glm45', all: ['<arg_key>', '<think>'] },
  { format: 'nemotron_3', all: ['<function=', '<think>', 'truncate_history_thinking'] },
  { format: 'qwen3', all: ['<think>'] },
]

/**
 * Which formats a chat template speaks, found from its source and control tokens; `undefined` where
 * nothing in it is telling.
 */
export function detectFormats(
  template: string,
  controls: readonly string[],
): { tools: ToolFormat | undefined; reasoning: ReasoningFormat | undefined } {
  // Templates write newlines inside quotes as escapes.
  const text = template.replaceAll('\\n', '\n').replaceAll('\\"', '"')
  const known = new Set(controls)
  const has = (sign: string): boolean =>
    text.includes(sign) || (known.has(sign) && sign === '<|python_tag|>')
  const find = <Format>(signs: readonly Signs<Format>[]): Format | undefined =>
    signs.find(({ all, none = [] }) => all.every(has) && !none.some(has))?.format
  return { tools: find(toolSigns), reasoning: find(reasoningSigns) }
}
