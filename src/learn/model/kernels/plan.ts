// The model's shape and addresses, read once per thread from the plan in shared memory.

import {
  BLOCK, CONTEXT, COSINES, HEADS, HIDDEN, LAYERS, PADDED_VOCABULARY, PANELS, PARAMETERS, PLAN,
  SCRATCH, SCRATCH_BYTES, SINES, VOCABULARY, WIDTH,
} from './layout'

export let width: usize = 0
export let layers: usize = 0
export let heads: usize = 0
export let headSize: usize = 0
export let hidden: usize = 0
export let vocabulary: usize = 0
export let paddedVocabulary: usize = 0
export let context: usize = 0
export let parameters: usize = 0
export let panels: usize = 0
export let cosines: usize = 0
export let sines: usize = 0
export let scratch: usize = 0
export let scoreScale: f32 = 0

/** `BLOCK` as an unsigned number. */
export const blockTokens: usize = BLOCK

/** Bytes of one layer's keys, or values, in one block. */
export let blockHalf: usize = 0

/** Takes over the plan; `thread` chooses the scratch of this instance. */
export function configure(thread: i32): void {
  width = word(WIDTH)
  layers = word(LAYERS)
  heads = word(HEADS)
  headSize = width / heads
  hidden = word(HIDDEN)
  vocabulary = word(VOCABULARY)
  paddedVocabulary = word(PADDED_VOCABULARY)
  context = word(CONTEXT)
  parameters = word(PARAMETERS)
  panels = word(PANELS)
  cosines = word(COSINES)
  sines = word(SINES)
  scratch = word(SCRATCH) + <usize>thread * word(SCRATCH_BYTES)
  scoreScale = <f32>1 / sqrt<f32>(<f32>headSize)
  blockHalf = (blockTokens * width) << 2
}

/** The word of the plan at a byte offset. */
export function word(offset: usize): usize {
  return <usize>load<u32>(offset + PLAN)
}
