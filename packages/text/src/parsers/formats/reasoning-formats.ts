import type { StageReader } from '../blocks.ts'
import { type FormatContext, hunyuanSuffix } from '../format.ts'
import { markers } from '../markers.ts'
import type { Thinking } from '../thinking.ts'
import { jsonUnit } from '../units/json-units.ts'
import { channelReader, interruptedReader } from './channels.ts'
import { harmonyReader } from './harmony.ts'
import { inklingSplitter } from './inkling.ts'

/** What a format of reasoning may look at. */
export interface ReasoningContext extends FormatContext {
  /** Whether the prompt opened a thinking block; undefined if nobody said. */
  readonly inside: boolean | undefined
  /** Whether calls are read afterwards. */
  readonly readsCalls: boolean
}

/** How reasoning is written: tags in text, or a whole output of its own kind. */
export type ReasoningReading =
  | { readonly kind: 'tags'; readonly thinking: (context: ReasoningContext) => Thinking }
  | { readonly kind: 'reader'; readonly reader: (context: ReasoningContext) => StageReader }

/** Where a K3 output may end inside a marker: behind a control token, or behind a channel's name. */
const kimiCuts = [
  '<|open|>',
  '<|close|>',
  '<|close|>think',
  '<|open|>response',
  '<|close|>response',
  '<|open|>tools',
  '<|close|>tools',
  '<|close|>message',
]

const tags = (make: (context: ReasoningContext) => Thinking): ReasoningReading => ({
  kind: 'tags',
  thinking: make,
})

const reader = (make: (context: ReasoningContext) => StageReader): ReasoningReading => ({
  kind: 'reader',
  reader: make,
})

/** `<think>` blocks, begun by the prompt or by the model, and ended early by some calls. */
const think = (begins: 'inside' | 'outside', ...calls: string[]): ReasoningReading =>
  tags(({ inside }) => ({
    open: '<think>',
    close: '</think>',
    inside: inside ?? begins === 'inside',
    calls,
  }))

const nothing = markers()
const apertusCalls = jsonUnit({ open: ['<|tools_prefix|>'], close: '<|tools_suffix|>' })

/**
 * Every format of reasoning. Names are those under which servers that parse them (SGLang) know
 * them; where two models differ only in whether the prompt opens the block, that is all that
 * differs here.
 */
const formats = {
  /** Apertus: blocks that calls may interrupt. */
  apertus2509: reader(({ inside }) =>
    interruptedReader(
      { open: '<|inner_prefix|>', close: '<|inner_suffix|>', inside: inside ?? false },
      apertusCalls,
    ),
  ),
  /** Command A and its successors: a channel of thinking before the one of the answer. */
  cohere_command4: reader(({ inside }) =>
    channelReader({
      thinking: {
        open: '<|START_THINKING|>',
        close: '<|END_THINKING|>',
        inside: inside ?? true,
      },
      answer: { open: '<|START_TEXT|>', close: '<|END_TEXT|>' },
      calls: { open: '<|START_ACTION|>', close: '<|END_ACTION|>' },
    }),
  ),
  /** DeepSeek R1: the output begins within thinking. */
  'deepseek-r1': think('inside'),
  /** DeepSeek V3: thinking if asked for. */
  'deepseek-v3': think('outside', '<tool_call>'),
  /** DeepSeek V4: thinking if asked for, ended by a call. */
  'deepseek-v4': think('outside', '<｜DSML｜'),
  /** Gemma 4: a channel named thought. */
  gemma4: tags(({ inside }) => ({
    open: '<|channel>thought\n',
    close: '<channel|>',
    inside: inside ?? false,
  })),
  /** GLM-4.5 and later. */
  glm45: think('outside', '<tool_call>'),
  /** gpt-oss: the analysis channel. */
  'gpt-oss': reader(({ readsCalls }) =>
    harmonyReader({ calls: 'raw', bare: readsCalls ? 'keep' : 'drop' }),
  ),
  /** Hunyuan (Hy3). */
  hunyuan: tags(({ inside, controls }) => {
    const suffix = hunyuanSuffix(controls)
    return {
      open: `<think${suffix}>`,
      close: `</think${suffix}>`,
      inside: inside ?? false,
      calls: [`<tool_calls${suffix}>`],
    }
  }),
  /** Inkling: messages of thoughts. */
  inkling: reader(() => inklingSplitter),
  /** Intern-S1. */
  interns1: think('outside', '<tool_call>'),
  /** Kimi before K2: triangles for brackets. */
  kimi: tags(({ inside }) => ({ open: '◁think▷', close: '◁/think▷', inside: inside ?? false })),
  /** Kimi K2. */
  kimi_k2: think('outside', '<|tool_calls_section_begin|>'),
  /** Kimi K3: a channel of thinking, which any other channel ends. */
  kimi_k3: reader(({ inside }) =>
    channelReader({
      thinking: {
        open: '<|open|>think<|sep|>',
        close: '<|close|>think<|sep|>',
        inside: inside ?? true,
      },
      answer: { open: '<|open|>response<|sep|>', close: '<|close|>response<|sep|>' },
      calls: { open: '<|open|>tools<|sep|>', close: '<|close|>tools<|sep|>' },
      end: '<|close|>message<|sep|>',
      interrupts: true,
      cut: kimiCuts,
    }),
  ),
  /** MiMo. */
  mimo: think('outside', '<tool_call>'),
  /** MiniMax-M1 and M2: the output begins within thinking. */
  minimax: think('inside', '<tool_call>'),
  /** MiniMax-M2 for consumers that keep thinking in the content: its opening tag is put back. */
  'minimax-append-think': reader(
    () =>
      function* (source, sink) {
        sink.content('<think>', source.position)
        yield* source.until(nothing, sink.content)
      },
  ),
  /** MiniMax-M3. */
  'minimax-m3': tags(({ inside }) => ({
    open: '<mm:think>',
    close: '</mm:think>',
    inside: inside ?? false,
    strayClose: true,
  })),
  /** Magistral and later Mistral models. */
  mistral: tags(({ inside }) => ({ open: '[THINK]', close: '[/THINK]', inside: inside ?? false })),
  /** Nemotron 3. */
  nemotron_3: think('outside', '<tool_call>'),
  /** Qwen3: thinking if asked for, ended by a call. */
  qwen3: think('outside', '<tool_call>'),
  /** Qwen3 models that always think: the prompt opens the block. */
  'qwen3-thinking': think('inside', '<tool_call>'),
  /** Step3: the output begins within thinking. */
  step3: think('inside'),
}

/** The name of a format of reasoning. */
export type ReasoningFormat = keyof typeof formats

/** How to read each format. */
export const reasoningReadings: Readonly<Record<ReasoningFormat, ReasoningReading>> = formats
