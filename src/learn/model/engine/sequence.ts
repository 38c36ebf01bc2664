import { randomAt, type Seed } from '../../../base/math/random.ts'
import { BLOCK } from '../kernels/layout.ts'
import type { SampleOrder } from '../protocol.ts'
import type { CacheNode, PrefixCache } from './prefix-cache.ts'

/** One running sample: its tokens, its blocks, and what it has drawn. */
export interface Sequence {
  /** Of its request. */
  readonly id: number
  readonly order: SampleOrder
  readonly seed: Seed
  /** Prompt and answer, up to the most it may become. */
  readonly tokens: Int32Array
  readonly path: CacheNode[]
  /** The place of its block table and its row of logits. */
  readonly slot: number
  /** Tokens that are chosen. */
  length: number
  /** Tokens whose keys and values are in the blocks. */
  computed: number
  readonly cachedTokens: number
  readonly logprobs: number[]
  readonly entropies: number[]
  readonly topLogprobs: TopLogprob[][]
}

/** A likely id with its log-probability. */
export interface TopLogprob {
  readonly id: number
  readonly logprob: number
}

/** The random number of the next token: a function of the seed and the token's position alone. */
export function nextRandom(sequence: Sequence): number {
  return randomAt(sequence.seed, sequence.length)
}

/** Blocks that are held free for each sequence: few ask for so many tokens as they may. */
const heldBlocks = 8

/** Blocks to hold free for a sequence of `path` blocks that may become `capacity` tokens long. */
export function blocksToHold(capacity: number, path: number): number {
  return Math.min(Math.ceil(capacity / BLOCK) - path, heldBlocks)
}

/** Blocks that a sequence takes for the tokens known by now. */
export function blocksWanted({ length, path }: Sequence): number {
  return Math.max(Math.ceil(length / BLOCK) - path.length, 0)
}

/** Takes the blocks for the tokens known by now and notes them there. */
export function extendPath(sequence: Sequence, cache: PrefixCache): void {
  const { path, tokens, length } = sequence
  for (let index = Math.max(path.length - 1, 0); index * BLOCK < length; index++) {
    const start = index * BLOCK
    if (index === path.length) path.push(cache.add(path[index - 1], tokens[start]!))
    const node = path[index]!
    const end = Math.min(start + BLOCK, length)
    for (; node.known < end - start; node.known++) {
      node.tokens[node.known] = tokens[start + node.known]!
    }
  }
}

/** Notes that keys and values are computed up to `end`. */
export function noteComputed(sequence: Sequence, end: number): void {
  const { path, computed } = sequence
  for (let index = Math.floor(computed / BLOCK); index * BLOCK < end; index++) {
    path[index]!.filled = Math.min(BLOCK, end - index * BLOCK)
  }
  sequence.computed = end
}
