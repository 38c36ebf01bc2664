import type { Generated } from './generated.ts'
import { readGeneratedBody } from './sglang-answer.ts'

/** How a whole answer is to be read: said in plain data, for it may be read in another thread. */
export interface Reading {
  /** The name of its reader. */
  readonly kind: string
  /** How many candidates per token were asked for. */
  readonly width: number
}

/** Readers by name: a thread is told the name, for functions cannot be sent to it. */
const readers: ReadonlyMap<string, typeof readGeneratedBody> = new Map([
  ['sglang-generate', readGeneratedBody],
])

/** Reads an answer; `where` names the request in messages. */
export function readAnswer(body: Buffer, { kind, width }: Reading, where: string): Generated {
  const read = readers.get(kind)
  if (!read) throw new Error(`No reader of answers is called "${kind}".`)
  return read(body, where, width)
}

/** What was read, as it is handed from thread to thread: a list and one piece of memory cost least. */
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
