import type { ToolDefinition } from '../../core/message.ts'
import type { Blocks, StageReader } from './blocks.ts'
import { callFromEntry, callFromObject, callWithArguments } from './call.ts'
import { clineUnit } from './cline-unit.ts'
import { eitherUnit } from './either-unit.ts'
import { gemmaUnit } from './gemma-unit.ts'
import { harmonyReader } from './harmony.ts'
import { inklingFraming, inklingUnit } from './inkling.ts'
import { jsonUnit, namedUnit } from './json-units.ts'
import { keyedUnit } from './keyed-unit.ts'
import { kimiCall } from './kimi.ts'
import { llamaUnit } from './llama-unit.ts'
import { mistralUnit } from './mistral-unit.ts'
import { nestedUnit } from './nested-unit.ts'
import { pythonUnit } from './python-unit.ts'
import { type TagUnit, tagUnit } from './tag-units.ts'
import type { ValueRule } from './values.ts'

/** What a format may look at: the tools that were offered, and the vocabulary's control strings. */
export interface FormatContext {
  readonly schemas: readonly ToolDefinition[]
  readonly controls: readonly string[] | undefined
}

/** How calls are written: blocks in text, or a whole output of its own kind. */
export type ToolReading =
  | { readonly kind: 'blocks'; readonly blocks: (context: FormatContext) => Blocks }
  | { readonly kind: 'reader'; readonly reader: StageReader }

const blocks = (make: (context: FormatContext) => Blocks): ToolReading => ({
  kind: 'blocks',
  blocks: make,
})

const text: ValueRule = { undeclared: 'text', union: 'text' }
const typed: ValueRule = { undeclared: 'text', union: 'typed' }
const json: ValueRule = { undeclared: 'json', union: 'json' }

const toolCall = jsonUnit({ open: ['<tool_call>'], close: '</tool_call>' })
const toolCallSection = { open: '<tool_call>', close: '</tool_call>' }

const functionTags: Pick<TagUnit, 'call' | 'parameter'> = {
  call: { open: '<function=', end: '>', close: '</function>' },
  parameter: { open: '<parameter=', end: '>', close: '</parameter>' },
}

/** `<invoke name="…"><parameter name="…">` with a prefix that families differ in. */
const invokeTags = (prefix: string): Pick<TagUnit, 'call' | 'parameter'> => ({
  call: { open: `<${prefix}invoke`, end: '>', close: `</${prefix}invoke>`, name: 'name' },
  parameter: {
    open: `<${prefix}parameter`,
    end: '>',
    close: `</${prefix}parameter>`,
    name: 'name',
  },
})

const qwenCoder: TagUnit = { ...functionTags, lines: true, rule: text }

/** GLM's tags, with a suffix that some vocabularies set before each closing bracket. */
const pairTags = (suffix = '') => ({
  open: `<tool_call${suffix}>`,
  close: `</tool_call${suffix}>`,
  key: { open: `<arg_key${suffix}>`, close: `</arg_key${suffix}>` },
  value: { open: `<arg_value${suffix}>`, close: `</arg_value${suffix}>` },
})

const glm = blocks(({ schemas }) => ({
  unit: keyedUnit({ ...pairTags(), rule: { undeclared: 'json', union: 'typed' } }, schemas),
}))

const deepseekSection = { open: '<｜tool▁calls▁begin｜>', close: '<｜tool▁calls▁end｜>' }

/** DeepSeek's markup language, whose outer tag was renamed between versions. */
const dsml = (outer: string): ToolReading =>
  blocks(({ schemas }) => ({
    section: { open: `<｜DSML｜${outer}>`, close: `</｜DSML｜${outer}>` },
    unit: tagUnit(
      {
        ...invokeTags('｜DSML｜'),
        type: { attribute: 'string', text: 'true' },
        json: true,
        rule: json,
      },
      schemas,
    ),
  }))

/** The part that a vocabulary adds to Hunyuan's control strings, such as `:opensource`. */
export function hunyuanSuffix(controls: readonly string[] | undefined): string {
  const found = controls?.find(control => /^<tool_calls[^>]*>$/.test(control))
  return found?.slice('<tool_calls'.length, -1) ?? ''
}

/**
 * Every format of tool calls. Names are those under which the servers that parse them
 * (SGLang, vLLM, twinkle) know them; each line says which models write so.
 */
const formats = {
  /** Apertus: a JSON list of objects, each with the tool's name as its only key. */
  apertus2509: blocks(() => ({
    unit: jsonUnit({
      open: ['<|tools_prefix|>'],
      close: '<|tools_suffix|>',
      read: callFromEntry,
    }),
  })),
  /** Cline and its kin: a tag named after the tool around tags named after the parameters. */
  cline: blocks(({ schemas }) => ({ unit: clineUnit(schemas) })),
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
  /** DeepSeek V3.2: tags that say themselves which values are text. */
  deepseekv32: dsml('function_calls'),
  /** DeepSeek V4: as V3.2 with another outer tag. */
  deepseekv4: dsml('tool_calls'),
  /** dots: tags around raw values, or a JSON object. */
  dots: blocks(({ schemas }) => ({
    section: { open: '<dots_function_call>', close: '</dots_function_call>' },
    unit: eitherUnit(
      tagUnit({ ...invokeTags(''), json: true, rule: typed }, schemas),
      jsonUnit({ open: [] }),
      ['{'],
    ),
  })),
  /** Gemma 4: a notation of its own, strings between quotation tokens. */
  gemma4: blocks(() => ({ unit: gemmaUnit })),
  /** GigaChat 3: one JSON object behind a marker. */
  gigachat3: blocks(() => ({
    unit: jsonUnit({ open: ['<|function_call|>', 'function call<|role_sep|>'] }),
  })),
  /** GLM-4.5 and 4.6: the name, then tagged keys and values on lines. */
  glm45: glm,
  /** GLM-4.7 and 5: as 4.5 without lines. */
  glm47: glm,
  /** gpt-oss: a message with a recipient. */
  'gpt-oss': {
    kind: 'reader',
    reader: harmonyReader({ calls: 'read', bare: 'keep' }),
  } as ToolReading,
  /** Hermes: JSON between tags, one object or a list. */
  hermes: blocks(() => ({ unit: toolCall })),
  /** Either of Qwen's two ways between the same tags. */
  hermes_qwen: blocks(({ schemas }) => ({
    section: toolCallSection,
    unit: eitherUnit(tagUnit({ ...qwenCoder, rule: json }, schemas), jsonUnit({ open: [] }), [
      '{',
      '[',
    ]),
  })),
  /** Hunyuan (Hy3): GLM's pairs, with a section around them and a mark behind the name. */
  hunyuan: blocks(({ schemas, controls }) => {
    const suffix = hunyuanSuffix(controls)
    return {
      section: { open: `<tool_calls${suffix}>`, close: `</tool_calls${suffix}>` },
      unit: keyedUnit(
        { ...pairTags(suffix), separator: `<tool_sep${suffix}>`, rule: typed },
        schemas,
      ),
    }
  }),
  /** Inkling: a message of the tool's name and JSON. */
  inkling: blocks(() => ({ unit: inklingUnit, framing: inklingFraming })),
  /** InternLM and Intern-S1: JSON behind a plugin marker. */
  interns1: blocks(() => ({
    unit: jsonUnit({ open: ['<|action_start|>'], then: '<|plugin|>', close: '<|action_end|>' }),
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
  /** Kimi K3: channels, tags made of control tokens, typed arguments. */
  kimi_k3: blocks(({ schemas }) => ({
    section: { open: '<|open|>tools<|sep|>', close: '<|close|>tools<|sep|>' },
    unit: tagUnit(
      {
        call: {
          open: '<|open|>call',
          end: '<|sep|>',
          close: '<|close|>call<|sep|>',
          name: 'tool',
        },
        parameter: {
          open: '<|open|>argument',
          end: '<|sep|>',
          close: '<|close|>argument<|sep|>',
          name: 'key',
        },
        type: { attribute: 'type', text: 'string' },
        rule: json,
      },
      schemas,
    ),
    framing: ['<|open|>response<|sep|>', '<|close|>response<|sep|>', '<|close|>message<|sep|>'],
  })),
  /** LFM2: a Python list of calls, or a JSON one, between tags. */
  lfm2: blocks(({ schemas }) => ({
    unit: pythonUnit(
      { wrap: { open: '<|tool_call_start|>', close: '<|tool_call_end|>' } },
      schemas,
    ),
  })),
  /** Llama 3: JSON objects behind a marker, or as the whole output. */
  llama3: blocks(() => ({ unit: llamaUnit })),
  /** MiMo: Qwen3-Coder's tags, values without lines. */
  mimo: blocks(({ schemas }) => ({
    section: toolCallSection,
    unit: tagUnit({ ...functionTags, rule: text }, schemas),
  })),
  /** MiniCPM5: tags around values that are escaped as XML. */
  minicpm5: blocks(({ schemas }) => ({
    unit: tagUnit(
      {
        call: { open: '<function ', end: '>', close: '</function>', name: 'name' },
        parameter: { open: '<param ', end: '>', close: '</param>', name: 'name' },
        xml: true,
        rule: json,
      },
      schemas,
    ),
  })),
  /** MiniMax-M2: tags around raw values. */
  'minimax-m2': blocks(({ schemas }) => ({
    section: { open: '<minimax:tool_call>', close: '</minimax:tool_call>' },
    unit: tagUnit({ ...invokeTags(''), rule: typed }, schemas),
  })),
  /** MiniMax-M3: tags named after the parameters, nested as the values are. */
  'minimax-m3': blocks(({ schemas }) => ({
    section: { open: ']<]minimax[>[<tool_call>', close: ']<]minimax[>[</tool_call>' },
    unit: nestedUnit(schemas),
  })),
  /** Mistral until 3.1: a JSON list behind a marker. */
  mistral: blocks(() => ({ unit: mistralUnit })),
  /** Mistral since: a name and JSON behind markers. */
  mistral_compact: blocks(() => ({ unit: mistralUnit })),
  /** Muse: tags in messages with a recipient. */
  muse: blocks(({ schemas }) => ({
    section: { open: '<atem:function_calls>', close: '</atem:function_calls>' },
    unit: tagUnit({ ...invokeTags('atem:'), rule: json }, schemas),
    framing: ['<|eom|>'],
    header: { open: '<|start|>', end: '<|message|>' },
  })),
  /** Laguna: GLM's pairs. */
  poolside_v1: blocks(({ schemas }) => ({
    unit: keyedUnit({ ...pairTags(), rule: json }, schemas),
  })),
  /** Llama 4 and others: a Python list of calls in plain text. */
  pythonic: blocks(({ schemas }) => ({
    unit: pythonUnit({}, schemas),
    framing: ['<|python_start|>', '<|python_end|>'],
  })),
  /** Qwen2.5 and Qwen3: JSON between tags. */
  qwen25: blocks(() => ({ unit: toolCall })),
  /** Qwen3-Coder, Qwen3.5, Step-3.5, Nemotron 3: tags around raw values on lines. */
  qwen3_coder: blocks(({ schemas }) => ({
    section: toolCallSection,
    unit: tagUnit(qwenCoder, schemas),
  })),
  /** Step3: tags in a section of control tokens. */
  step3: blocks(({ schemas }) => ({
    section: { open: '<｜tool_calls_begin｜>', close: '<｜tool_calls_end｜>' },
    unit: tagUnit(
      {
        ...invokeTags('steptml:'),
        wrap: {
          open: '<｜tool_call_begin｜>function<｜tool_sep｜>',
          close: '<｜tool_call_end｜>',
        },
        rule: typed,
      },
      schemas,
    ),
  })),
  /** Trinity: as Qwen2.5. */
  trinity: blocks(() => ({ unit: toolCall })),
}

/** The name of a format of tool calls. */
export type ToolFormat = keyof typeof formats

/** How to read each format. */
export const toolReadings: Readonly<Record<ToolFormat, ToolReading>> = formats
