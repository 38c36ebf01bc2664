import { parseJson } from './reading.ts'
import { type Generated, readGenerated } from './sglang-answer.ts'

/** How a whole answer is to be read: said in plain data, for it may be read in another thread. */
export interface Reading {
  /** An answer of SGLang's `/generate`. */
  readonly kind: 'sglang-generate'
  /** Method and address, for messages. */
  readonly where: string
  /** How many candidates per token were asked for. */
  readonly width: number
}

/** Reads an answer. What it gives is plain data and typed arrays. */
export function readAnswer(body: Buffer, { where, width }: Reading): Generated {
  return readGenerated(parseJson(body, where), where, width)
}
