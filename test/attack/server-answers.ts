import { readChatAnswer } from '../../src/engine/policies/servers/chat-answer.ts'
import {
  makeLlamaStream,
  readLlamaAnswer,
} from '../../src/engine/policies/servers/llama-cpp-answer.ts'
import {
  makeGeneratedStream,
  readGenerated,
} from '../../src/engine/policies/servers/sglang-answer.ts'
import { makeChoice, readChoices } from '../../src/engine/policies/servers/vllm-answer.ts'
import { sampleOf } from '../../src/engine/policies/tinker/messages.ts'
import { readEvents } from '../../src/engine/policies/transport/events.ts'
import { ServerError } from '../../src/engine/policies/transport/server-error.ts'
import {
  chatAnswer as chat,
  llamaAnswer as llama,
  sglangAnswer as sglang,
  vllmAnswer as vllm,
} from '../fixtures/server-answers.ts'
import { type Attack, damagedJson, hold, oneOf } from './attack.ts'

const where = 'POST http://server/path'
const prompt = Int32Array.of(1, 2)
const asked = { where, width: 1, prompt: () => prompt, stopIds: [], stopStrings: [] }
const tinker = { sequences: [{ tokens: [5, 6], logprobs: [-1, -0.5], stop_reason: 'stop' }] }

type Read = readonly [string, unknown, (answer: unknown) => unknown]

/** An answer that is no object is refused before anything looks into it. */
function fieldsOf(answer: unknown): Readonly<Record<string, unknown>> {
  const isRecord = typeof answer === 'object' && answer !== null
  return isRecord ? (answer as Record<string, unknown>) : {}
}

/** Tinker's answers are refused in words that name the call; a type error would be our own mistake. */
function asServers(read: () => unknown): unknown {
  try {
    return read()
  } catch (cause) {
    const { message } = cause as Error
    throw message.startsWith('asample') ? new ServerError('answer', message) : cause
  }
}

/** Reads an answer as the one event of a stream. */
const streamed =
  (open: () => { take(data: string): void; finish(): unknown }) =>
  (answer: unknown): unknown => {
    const stream = open()
    stream.take(JSON.stringify(answer))
    return stream.finish()
  }

const readers: readonly Read[] = [
  ['sglang', sglang, answer => readGenerated(answer, where, 1)],
  ['sglang stream', sglang, streamed(() => makeGeneratedStream(where, 1))],
  ['vllm', vllm, answer => readChoices(answer, asked)],
  [
    'vllm stream',
    vllm,
    streamed(() => {
      const choice = makeChoice(asked)
      return { take: data => void choice.takeEvent(data), finish: () => choice.finish() }
    }),
  ],
  ['llama.cpp', llama, answer => readLlamaAnswer(answer, asked)],
  ['llama.cpp stream', llama, streamed(() => makeLlamaStream(asked))],
  ['tinker', tinker, answer => asServers(() => sampleOf(fieldsOf(answer)))],
  ['openai', chat, answer => readChatAnswer(answer, where, prompt)],
]

/** Answers of every protocol with a place damaged: read, or refused as the server's mistake. */
export const serverAnswers: Attack = {
  name: 'server answers',
  promise: 'O1',
  share: 231,
  async open() {
    return draw => {
      const [name, right, read] = oneOf(readers, draw)
      let answer: unknown = right
      for (let count = 1 + Math.floor(draw() * 3); count > 0; count--) {
        answer = damagedJson(answer, draw)
      }
      try {
        read(answer)
      } catch (cause) {
        hold(cause instanceof ServerError, `${name} ${JSON.stringify(answer)}: ${String(cause)}`)
      }
    }
  },
}

/** Event streams cut anywhere, with any line ends: the data of every event comes once and in order. */
export const eventStreams: Attack = {
  name: 'event streams',
  promise: 'H6',
  share: 200,
  async open() {
    return draw => {
      const end = oneOf(['\n', '\r\n'], draw)
      const data = Array.from(
        { length: Math.floor(draw() * 6) },
        (_, at) => `${at}${oneOf(['', ' ', '🎉', ':', 'data:', '\\n'], draw)}x`,
      )
      const body = Buffer.from(data.map(each => `data: ${each}${end}${end}`).join(''))
      const taken: string[] = []
      const take = readEvents(where, each => taken.push(each))
      for (let at = 0; at < body.length; ) {
        const next = at + 1 + Math.floor(draw() * 9)
        take(body.subarray(at, next))
        at = next
      }
      hold(JSON.stringify(taken) === JSON.stringify(data), `${JSON.stringify(taken)} of ${body}`)
    }
  },
}
