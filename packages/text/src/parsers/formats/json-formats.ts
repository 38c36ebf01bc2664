import { callFromEntry, callFromObject, callWithArguments } from '../call.ts'
import { blocks, type ToolReading } from '../format.ts'
import { jsonUnit, namedUnit } from '../units/json-units.ts'
import { llamaOpening, llamaUnit } from '../units/llama-unit.ts'
import { mistralUnit } from '../units/mistral-unit.ts'
import { harmonyReader } from './harmony.ts'
import { inklingFraming, inklingUnit } from './inkling.ts'
import { kimiCall } from './kimi.ts'

const toolCall = jsonUnit({ open: ['<tool_call>'], close: '</tool_call>' })
const deepseekSection = { open: '<｜tool▁calls▁begin｜>', close: '<｜tool▁calls▁end｜>' }

/** Formats whose arguments are JSON, so that markers within strings can be told from markers. */
export const jsonFormats = {
  /** Apertus: a JSON list of objects, each with the tool's name as its only key. */
  apertus2509: blocks(() => ({
    unit: jsonUnit({
      open: ['<|tools_prefix|>'],
      close: '<|tools_suffix|>',
      read: callFromEntry,
    }),
  })),
  /** Command A and its successors: a JSON list of calls with ids; the answer has its own tags. */
  cohere_command4: blocks(() => ({
    unit: jsonUnit({
      open: ['<|START_ACTION|>'],
      close: '<|END_ACTION|>',
      read: object =>
        callFromObject(object, {
          name: ['tool_name', 'name'],
          arguments: ['parameters', 'arguments'],
          id: 'tool_call_id',
        }),
    }),
    framing: ['<|START_TEXT|>', '<|END_TEXT|>', '<|START_RESPONSE|>', '<|END_RESPONSE|>'],
  })),
  /** DeepSeek V3 and R1: the name, then JSON in a code fence. */
  deepseekv3: blocks(() => ({
    section: deepseekSection,
    unit: namedUnit({
      open: '<｜tool▁call▁begin｜>',
      lead: 'function<｜tool▁sep｜>',
      separator: '\n',
      fence: { open: '```json', close: '```' },
      close: '<｜tool▁call▁end｜>',
      read: callWithArguments,
    }),
  })),
  /** DeepSeek V3.1: the name, then JSON. */
  deepseekv31: blocks(() => ({
    section: deepseekSection,
    unit: namedUnit({
      open: '<｜tool▁call▁begin｜>',
      separator: '<｜tool▁sep｜>',
      close: '<｜tool▁call▁end｜>',
      read: callWithArguments,
    }),
  })),
  /** GigaChat 3: one JSON object behind a marker. */
  gigachat3: blocks(() => ({
    unit: jsonUnit({ open: ['<|function_call|>', 'function call<|role_sep|>'] }),
  })),
  /** gpt-oss: a message with a recipient. */
  'gpt-oss': {
    kind: 'reader',
    reader: harmonyReader({ calls: 'read', bare: 'keep' }),
  },
  /** Hermes: JSON between tags, one object or a list. */
  hermes: blocks(() => ({ unit: toolCall })),
  /** Inkling: a message of the tool's name and JSON. */
  inkling: blocks(() => ({ unit: inklingUnit, framing: inklingFraming })),
  /** InternLM and Intern-S1: JSON behind a plugin marker. */
  interns1: blocks(() => ({
    unit: jsonUnit({ open: ['<|action_start|>'], lead: '<|plugin|>', close: '<|action_end|>' }),
  })),
  /** Kimi K2: an id with the name in it, then JSON. */
  kimi_k2: blocks(({ schemas }) => ({
    section: { open: '<|tool_calls_section_begin|>', close: '<|tool_calls_section_end|>' },
    unit: namedUnit({
      open: '<|tool_call_begin|>',
      separator: '<|tool_call_argument_begin|>',
      close: '<|tool_call_end|>',
      read: (head, object) => kimiCall(head, object, schemas),
    }),
  })),
  /** Llama 3: JSON objects behind a marker, or as the whole output. */
  llama3: blocks(() => ({ unit: llamaUnit, opening: llamaOpening })),
  /** Mistral until 3.1: a JSON list behind a marker. */
  mistral: blocks(() => ({ unit: mistralUnit })),
  /** Mistral since: a name and JSON behind markers. */
  mistral_compact: blocks(() => ({ unit: mistralUnit })),
  /** Qwen2.5 and Qwen3: JSON between tags. */
  qwen25: blocks(() => ({ unit: toolCall })),
  /** Trinity: as Qwen2.5. */
  trinity: blocks(() => ({ unit: toolCall })),
} satisfies Record<string, ToolReading>
