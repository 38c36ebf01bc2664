import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ServerError } from '../transport/server-error.ts'
import { readChatAnswer } from './chat-answer.ts'
import { openLlamaStream, readLlamaAnswer } from './llama-cpp-answer.ts'
import { openGeneratedStream, readGenerated, readScores } from './sglang-answer.ts'
import { openChoice, readChoices, readPromptLogprobs } from './vllm-answer.ts'

const where = 'POST http://server/path'
const prompt = Int32Array.of(1, 2)

/** Right answers, to be damaged. */
const sglang = {
  output_ids: [5, 6],
  meta_info: {
    finish_reason: { type: 'stop', matched: 6 },
    prompt_tokens: 2,
    completion_tokens: 2,
    cached_tokens: 1,
    weight_version: '3',
    output_token_logprobs: [
      [-0.5, 5, null],
      [-1, 6, null],
    ],
    output_top_logprobs: [[[-0.5, 5, null]], [[-1, 6, null]]],
    input_token_logprobs: [
      [null, 1, null],
      [-2, 2, null],
    ],
  },
}
const entry = (id: number) => ({ token: `token_id:${id}`, logprob: -1 })
const vllm = {
  choices: [
    {
      index: 0,
      token_ids: [5, 6],
      prompt_token_ids: [1, 2],
      finish_reason: 'stop',
      logprobs: { content: [5, 6].map(id => ({ ...entry(id), top_logprobs: [entry(id)] })) },
    },
  ],
  prompt_logprobs: [null, { 2: { logprob: -2 } }],
  usage: { prompt_tokens_details: { cached_tokens: 1 } },
}
const llama = {
  tokens: [5, 6],
  stop: true,
  stop_type: 'eos',
  tokens_predicted: 2,
  tokens_evaluated: 2,
  timings: { cache_n: 1 },
  completion_probabilities: [5, 6].map(id => ({
    id,
    bytes: [65],
    prob: 0.5,
    top_probs: [{ id, prob: 0.5 }],
  })),
}
const chat = {
  choices: [
    {
      message: {
        role: 'assistant',
        content: 'x',
        reasoning_content: 'y',
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      finish_reason: 'stop',
      token_ids: [5],
      prompt_token_ids: [1, 2],
      logprobs: { content: [{ logprob: -1 }] },
    },
  ],
  usage: { prompt_tokens: 2, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 1 } },
}

const asked = { where, width: 1, prompt, stopIds: [], stopStrings: [] }
const ofPrompt = { ids: prompt, from: 1 }
const readers: Readonly<Record<string, readonly [unknown, (answer: unknown) => unknown]>> = {
  sglang: [sglang, answer => readGenerated(answer, where, 1)],
  'sglang scores': [sglang, answer => readScores(answer, where, prompt.subarray(1))],
  'sglang stream': [
    sglang,
    answer => {
      const stream = openGeneratedStream(where, 1)
      stream.take(JSON.stringify(answer))
      return stream.finish()
    },
  ],
  vllm: [vllm, answer => readChoices(answer, asked)],
  'vllm stream': [
    vllm,
    answer => {
      const choice = openChoice(asked)
      choice.takeEvent(JSON.stringify(answer))
      return choice.finish()
    },
  ],
  'vllm scores': [vllm.prompt_logprobs, answer => readPromptLogprobs(answer, where, ofPrompt)],
  llama: [llama, answer => readLlamaAnswer(answer, asked)],
  'llama stream': [
    llama,
    answer => {
      const stream = openLlamaStream(asked)
      stream.take(JSON.stringify(answer))
      return stream.finish()
    },
  ],
  chat: [chat, answer => readChatAnswer(answer, where, prompt)],
}

/** Every place in a JSON value. */
function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, each]) => placesIn(each, [...path, key]))]
}

/** The value with something else at one place; `undefined` removes what was there. */
function damaged(value: unknown, [key, ...rest]: readonly string[], other: unknown): unknown {
  if (key === undefined) return other
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<
    string,
    unknown
  >
  const inner = damaged(copy[key], rest, other)
  if (inner === undefined && Array.isArray(copy)) copy.splice(Number(key), 1)
  else if (inner === undefined) delete copy[key]
  else copy[key] = inner
  return copy
}

describe('answers', () => {
  it.each(Object.entries(readers))('read or refused in words, however damaged: %s', (_, part) => {
    const [right, read] = part
    expect(() => read(right)).not.toThrow()
    const places = placesIn(right)
    const others = fc.oneof(
      fc.constantFrom(undefined, null, -1, 1.5, '', 'x', [], {}, true, 2 ** 40, [null], [[]]),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(fc.constantFrom(...places), others, (path, other) => {
        try {
          read(damaged(right, path, other) ?? null)
        } catch (cause) {
          expect(cause).toBeInstanceOf(ServerError)
          expect((cause as Error).message).toContain(where)
          expect((cause as Error).message.length).toBeLessThan(600)
        }
      }),
      { seed: 5, numRuns: process.env.ESPALIER_SOAK ? 20_000 : 400 },
    )
  })
})
