import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  chatAnswer as chat,
  llamaAnswer as llama,
  sglangAnswer as sglang,
  vllmAnswer as vllm,
} from '../../../../test/fixtures/server-answers.ts'
import { ServerError } from '../transport/server-error.ts'
import { readChatAnswer } from './chat-answer.ts'
import { makeLlamaStream, readLlamaAnswer } from './llama-cpp-answer.ts'
import { makeGeneratedStream, readGenerated, readScores } from './sglang-answer.ts'
import { makeChoice, readChoices, readPromptLogprobs } from './vllm-answer.ts'

const where = 'POST http://server/path'
const prompt = Int32Array.of(1, 2)

const asked = { where, width: 1, prompt: () => prompt, stopIds: [], stopStrings: [] }
const ofPrompt = { ids: prompt, from: 1 }
const readers: Readonly<Record<string, readonly [unknown, (answer: unknown) => unknown]>> = {
  sglang: [sglang, answer => readGenerated(answer, where, 1)],
  'sglang scores': [sglang, answer => readScores(answer, where, prompt.subarray(1))],
  'sglang stream': [
    sglang,
    answer => {
      const stream = makeGeneratedStream(where, 1)
      stream.take(JSON.stringify(answer))
      return stream.finish()
    },
  ],
  vllm: [vllm, answer => readChoices(answer, asked)],
  'vllm stream': [
    vllm,
    answer => {
      const choice = makeChoice(asked)
      choice.takeEvent(JSON.stringify(answer))
      return choice.finish()
    },
  ],
  'vllm scores': [vllm.prompt_logprobs, answer => readPromptLogprobs(answer, where, ofPrompt)],
  llama: [llama, answer => readLlamaAnswer(answer, asked)],
  'llama stream': [
    llama,
    answer => {
      const stream = makeLlamaStream(asked)
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
