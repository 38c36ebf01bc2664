import type { ReasoningFormat } from './formats/reasoning-formats.ts'
import type { ToolFormat } from './formats/tool-formats.ts'

/** The formats that a model writes, each undefined if nothing certain is known. */
export interface DetectedFormats {
  readonly tools: ToolFormat | undefined
  readonly reasoning: ReasoningFormat | undefined
}

interface Rule<Format> {
  readonly format: Format
  /** Strings that must all occur. */
  readonly has: readonly string[]
  /** Strings that must not occur. */
  readonly lacks?: readonly string[]
}

/** From specific to general: the first rule that fits decides. */
const toolRules: readonly Rule<ToolFormat>[] = [
  { format: 'apertus2509', has: ['<|tools_prefix|>'] },
  { format: 'cohere_command4', has: ['<|START_ACTION|>'] },
  { format: 'deepseekv32', has: ['｜DSML｜', 'function_calls>'] },
  { format: 'deepseekv4', has: ['｜DSML｜'] },
  { format: 'deepseekv3', has: ['<｜tool▁call▁begin｜>', '```json'] },
  { format: 'deepseekv31', has: ['<｜tool▁call▁begin｜>'] },
  { format: 'dots', has: ['<dots_function_call>'] },
  { format: 'gemma4', has: ['<|tool_call>', 'call:'] },
  { format: 'gigachat3', has: ['<|function_call|>'] },
  { format: 'gigachat3', has: ['function call', '<|role_sep|>'] },
  { format: 'gpt-oss', has: ['<|channel|>', 'to=', 'functions.'] },
  { format: 'hunyuan', has: ['<tool_calls', '<tool_sep', '<arg_key'] },
  { format: 'inkling', has: ['<|content_invoke_tool_json|>'] },
  { format: 'interns1', has: ['<|action_start|>', '<|plugin|>'] },
  { format: 'kimi_k2', has: ['<|tool_calls_section_begin|>'] },
  { format: 'kimi_k3', has: ['<|open|>', '<|sep|>', 'tools'] },
  { format: 'lfm2', has: ['<|tool_call_start|>'] },
  { format: 'lfm2', has: ['<|tool_list_start|>'] },
  { format: 'minimax-m3', has: [']<]minimax[>['] },
  { format: 'minimax-m2', has: ['<minimax:tool_call>'] },
  { format: 'mistral_compact', has: ['[TOOL_CALLS]', '[ARGS]'] },
  { format: 'mistral', has: ['[TOOL_CALLS]'] },
  { format: 'muse', has: ['<atem:'] },
  { format: 'step3', has: ['<steptml:'] },
  { format: 'minicpm5', has: ['<function name=', '<param name='] },
  { format: 'poolside_v1', has: ['<arg_key>', '<assistant>'] },
  { format: 'glm45', has: ['<tool_call>', '</arg_key>\n'] },
  { format: 'glm47', has: ['<tool_call>', '<arg_key>'] },
  { format: 'mimo', has: ['<tool_call>', '<function=', '<parameter='], lacks: ['</parameter>\n'] },
  { format: 'qwen3_coder', has: ['<tool_call>', '<function=', '<parameter='] },
  { format: 'qwen25', has: ['<tool_call>\n{'], lacks: ['<tool_calls>'] },
  { format: 'hermes', has: ['<tool_call>', '"arguments"'], lacks: ['<tool_calls>'] },
  { format: 'pythonic', has: ['<|python_start|>'] },
  { format: 'llama3', has: ['{"name": function name, "parameters":'], lacks: ['<function='] },
]

const tagRules: readonly Rule<ReasoningFormat>[] = [
  { format: 'apertus2509', has: ['<|inner_prefix|>'] },
  { format: 'cohere_command4', has: ['<|START_THINKING|>'] },
  { format: 'gemma4', has: ['<|channel>'] },
  { format: 'gpt-oss', has: ['<|channel|>', 'analysis'] },
  { format: 'inkling', has: ['<|content_thinking|>'] },
  { format: 'kimi', has: ['◁think▷'] },
  { format: 'kimi_k3', has: ['<|open|>', '<|sep|>', 'think'] },
  { format: 'minimax-m3', has: ['mm:think>'] },
  { format: 'mistral', has: ['[THINK]'] },
]

/** Which of the formats with `<think>` goes with a format of calls: they end thinking differently. */
const thinkingWith: Readonly<Partial<Record<ToolFormat, ReasoningFormat>>> = {
  deepseekv3: 'deepseek-r1',
  deepseekv31: 'deepseek-v3',
  deepseekv32: 'deepseek-v4',
  deepseekv4: 'deepseek-v4',
  glm45: 'glm45',
  glm47: 'glm45',
  hunyuan: 'hunyuan',
  interns1: 'interns1',
  kimi_k2: 'kimi_k2',
  mimo: 'mimo',
  'minimax-m2': 'minimax',
  step3: 'step3',
}

/**
 * Which formats a chat template uses. Its source decides; if it offers tools without showing how to
 * call them, the vocabulary's control strings decide. Whether a prompt ends within a thinking block
 * is not decided here: rendering one shows it.
 */
export function detectFormats(template: string, controls: readonly string[]): DetectedFormats {
  // Line breaks are written as escapes within the strings of a template.
  const text = template.replaceAll('\\n', '\n')
  const offersTools = /\btools\b/.test(template)
  const tools = firstFit(toolRules, text) ?? (offersTools ? fromControls(controls) : undefined)
  const thinks = /<\/?think\b/.test(text)
  const reasoning =
    firstFit(tagRules, text) ?? (thinks ? ((tools && thinkingWith[tools]) ?? 'qwen3') : undefined)
  return { tools, reasoning }
}

/** Control strings that only one format has; those with `<tool_call>` say nothing of its content. */
function fromControls(controls: readonly string[]): ToolFormat | undefined {
  const telling = toolRules.filter(({ has, lacks }) => has.length === 1 && lacks === undefined)
  return telling.find(({ has }) => controls.includes(has[0]!))?.format
}

const firstFit = <Format>(rules: readonly Rule<Format>[], text: string): Format | undefined =>
  rules.find(
    ({ has, lacks = [] }) =>
      has.every(string => text.includes(string)) && !lacks.some(string => text.includes(string)),
  )?.format
