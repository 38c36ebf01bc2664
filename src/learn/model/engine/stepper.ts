import type { TokenNews } from '../protocol.ts'
import type { Sequence, TopLogprob } from './sequence.ts'

/** One sequence's part of a step. */
export interface Part {
  readonly sequence: Sequence
  /** Tokens that the step computes, behind those whose keys and values are there. */
  readonly count: number
  /** The place of the next token's distribution among those of the step, when the step reaches it. */
  readonly row: number | undefined
}

/** What computes the steps of sampling: the threads of this processor, or a graphics card. */
export interface Stepper {
  /** Sequences that run at the same time, at most. */
  readonly slots: number
  /** Blocks of keys and values. */
  readonly blocks: number
  /** The most tokens of a sequence. */
  readonly context: number
  /** The sequences of the next step, of those that run in the order of their turns, which this may change. */
  next(running: Map<number, Sequence>): readonly Sequence[]
  /** Takes note of a sequence's blocks, which have changed. */
  place(sequence: Sequence): void
  /** Copies a block's keys and values. */
  copyBlock(from: number, to: number): void
  /** Computes a step; keys and values may be lost over it, and then nothing else is known of it. */
  step(parts: readonly Part[]): undefined | Promise<'done' | 'lost'>
  /** What the step drew in a row. */
  token(row: number): TokenNews
  /** The likeliest ids of a row, likeliest first; equal ones by id. */
  likeliest(row: number, count: number): TopLogprob[]
}

/** Tokens of one sequence that one step computes, at most: others get their turn in between. */
export const spanLimit = 128

/** Tokens of one step, at most. */
export const stepTokens = 4096

/** Sequences that run at the same time, at most. */
const slotLimit = 512

/** Bytes of logits: models of many words run fewer sequences at the same time. */
const logitBytes = 64 * 2 ** 20

/** Sequences that run at the same time, by the width of a row of logits. */
export function slotsFor(vocabulary: number): number {
  return Math.min(slotLimit, Math.floor(logitBytes / (vocabulary * 4)))
}

/** Chooses what each sequence does in the next step; sequences beyond the step's size wait. */
export function planParts(sequences: readonly Sequence[]): Part[] {
  const parts: Part[] = []
  let total = 0
  let rows = 0
  for (const sequence of sequences) {
    const missing = sequence.length - sequence.computed
    const count = Math.min(missing, spanLimit)
    if (total + count > stepTokens) continue
    parts.push({ sequence, count, row: count === missing ? rows++ : undefined })
    total += count
  }
  return parts
}

/** The ids of the largest logits, largest first; equal ones by id. */
export function likeliestOf(logits: Float32Array, count: number): number[] {
  const isBefore = (a: number, b: number) =>
    logits[a]! > logits[b]! || (logits[a] === logits[b] && a < b)
  const best: number[] = []
  for (let id = 0; id < logits.length; id++) {
    if (best.length === count && !isBefore(id, best[count - 1]!)) continue
    if (best.length === count) best.pop()
    let at = best.length
    while (at > 0 && isBefore(id, best[at - 1]!)) at--
    best.splice(at, 0, id)
  }
  return best
}
