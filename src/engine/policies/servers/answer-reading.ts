import type { Generated } from './generated.ts'
import { readGeneratedBody } from './sglang-answer.ts'
import { readChoiceBody } from './vllm-answer.ts'

/** How to read a whole answer, as plain data, since another thread may read it. */
export interface Reading {
  readonly kind: keyof typeof readers
  /** How many candidates per token were asked for. */
  readonly width: number
}

/** What a reader is told of a request. */
export interface Asked {
  /** Names the request in messages. */
  readonly where: string
  readonly width: number
  /** The body that was sent. */
  readonly sent: Buffer
}

/** Readers by name, since functions cannot be sent to a thread. */
const readers = {
  'sglang-generate': (body: Buffer, { where, width }: Asked) =>
    readGeneratedBody(body, where, width),
  'vllm-choice': readChoiceBody,
} as const

/** Reads the body of an answer. */
export function readAnswer(body: Buffer, kind: Reading['kind'], asked: Asked): Generated {
  return readers[kind](body, asked)
}

/** An answer as it is passed between threads: a list with one piece of memory is cheapest. */
export type PackedAnswer = readonly [
  tokens: ArrayBuffer,
  finish: Generated['finish'],
  weights: unknown,
  promptTokens: number | undefined,
  cachedTokens: number | undefined,
  top: Generated['top'],
  experts: unknown,
]

/** Packs an answer for its way between threads. */
export function packAnswer(generated: Generated): PackedAnswer {
  const { ids, logprobs, finish, weights, promptTokens, cachedTokens, top, experts } = generated
  return [memoryOf(ids, logprobs), finish, weights, promptTokens, cachedTokens, top, experts]
}

/** Ids and then log-probabilities in one piece of memory. */
function memoryOf(ids: Int32Array, logprobs: Float32Array): ArrayBuffer {
  const { buffer, byteLength } = ids
  const isReady = logprobs.buffer === buffer && logprobs.byteOffset === byteLength
  if (isReady && buffer.byteLength === 2 * byteLength) return buffer as ArrayBuffer
  const memory = new ArrayBuffer(2 * byteLength)
  new Int32Array(memory, 0, ids.length).set(ids)
  new Float32Array(memory, byteLength).set(logprobs)
  return memory
}

/** The answer that was packed. */
export function unpackAnswer(packed: PackedAnswer): Generated {
  const [tokens, finish, weights, promptTokens, cachedTokens, top, experts] = packed
  const count = tokens.byteLength / 8
  const ids = new Int32Array(tokens, 0, count)
  const logprobs = new Float32Array(tokens, count * 4)
  return { ids, logprobs, finish, weights, promptTokens, cachedTokens, top, experts }
}
