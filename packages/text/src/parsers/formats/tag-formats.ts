import { blocks, hunyuanSuffix, type ToolReading } from '../format.ts'
import { clineUnit } from '../units/cline-unit.ts'
import { eitherUnit } from '../units/either-unit.ts'
import { gemmaUnit } from '../units/gemma-unit.ts'
import { jsonUnit } from '../units/json-units.ts'
import { keyedUnit } from '../units/keyed-unit.ts'
import { nestedUnit } from '../units/nested-unit.ts'
import { pythonUnit } from '../units/python-unit.ts'
import { type TagUnit, tagUnit } from '../units/tag-units.ts'
import type { ValueRule } from '../values.ts'

const text: ValueRule = { undeclared: 'text', union: 'text' }
const typed: ValueRule = { undeclared: 'text', union: 'typed' }
const json: ValueRule = { undeclared: 'json', union: 'json' }

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

/** DeepSeek's markup language, whose outer tag was renamed between versions. */
const dsml = (outer: string): ToolReading =>
  blocks(({ schemas }) => ({
    section: { open: `<｜DSML｜${outer}>`, close: `</｜DSML｜${outer}>` },
    unit: tagUnit(
      {
        ...invokeTags('｜DSML｜'),
        type: { attribute: 'string', text: 'true' },
        json: true,
        rule: { ...json, strips: 'space' },
      },
      schemas,
    ),
  }))

/** Formats whose arguments are raw text in tags, Python, or a notation of their own. */
export const tagFormats = {
  /** Cline and its kin: a tag named after the tool around tags named after the parameters. */
  cline: blocks(({ schemas }) => ({ unit: clineUnit(schemas) })),
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
  /** GLM-4.5 and 4.6: the name, then tagged keys and values on lines. */
  glm45: glm,
  /** GLM-4.7 and 5: as 4.5 without lines. */
  glm47: glm,
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
    unit: tagUnit(
      { ...invokeTags(''), rule: { ...typed, strips: 'lines', literals: false } },
      schemas,
    ),
  })),
  /** MiniMax-M3: tags named after the parameters, nested as the values are. */
  'minimax-m3': blocks(({ schemas }) => ({
    section: { open: ']<]minimax[>[<tool_call>', close: ']<]minimax[>[</tool_call>' },
    unit: nestedUnit(schemas),
  })),
  /** Muse: tags in messages with a recipient. */
  muse: blocks(({ schemas }) => ({
    section: { open: '<atem:function_calls>', close: '</atem:function_calls>' },
    unit: tagUnit({ ...invokeTags('atem:'), rule: json }, schemas),
    framing: ['<|eom|>'],
    header: { open: '<|start|>', end: '<|message|>', rest: ' to=' },
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
        rule: { ...typed, strips: 'space' },
      },
      schemas,
    ),
  })),
} satisfies Record<string, ToolReading>
