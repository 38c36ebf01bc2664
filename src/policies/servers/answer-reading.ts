import type { Generated } from './generated.ts'
import { readGeneratedBody } from './sglang-answer.ts'

/** How to read a whole answer, as plain data, since another thread may read it. */
export interface Reading {
  /** The name of its reader. */
  readonly kind: string
  /** How many candidates per token were asked for. */
  readonly width: number
}

/** Readers by name, since functions cannot be sent to a thread. */
const readers: ReadonlyMap<string, typeof readGeneratedBody> = new Map([
  ['sglang-generate', readGeneratedBody],
])

/** Reads an answer; `where` names the request in messages. */
export function readAnswer(body: Buffer, { kind, width }: Reading, where: string): Generated {
  const read = readers.get(kind)
  if (!read) throw new Error(`No reader of answers is called "${kind}".`)
  return read(body, where, width)
}

/** An answer as it is passed between threads: a list with one piece of memory is cheapest. */
export type PackedAnswer = readonly [
  tokens: ArrayBuffer,
  finish: Generated['finish'],
  weights: unknown,
  promptTokens: number | undefined,
  cachedTokens: number | undefined,
  top: Generated['top'],
]

/** Packs an answer for its way between threads. */
export function packAnswer(generated: Generated): PackedAnswer {
  const { ids, logprobs, finish, weights, promptTokens, cachedTokens, top } = generated
  const tokens = new ArrayBuffer(ids.length * 8)
  new Int32Array(tokens, 0, ids.length).set(ids)
  new Float32Array(tokens, ids.length * 4).set(logprobs)
  return [tokens, finish, weights, promptTokens, cachedTokens, top]
}

/** The answer that was packed. */
export function unpackAnswer(packed: PackedAnswer): Generated {
  const [tokens, finish, weights, promptTokens, cachedTokens, top] = packed
  const count = tokens.byteLength / 8
  const ids = new Int32Array(tokens, 0, count)
  const logprobs = new Float32Array(tokens, count * 4)
  return { ids, logprobs, finish, weights, promptTokens, cachedTokens, top }
}
