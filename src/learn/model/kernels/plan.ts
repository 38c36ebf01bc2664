// The model's shape and addresses, read once per thread from the plan in shared memory.

import {
  BLOCK, CONTEXT, COSINES, FIXED, FROZEN, HALVES, HEADS, HEAD_SIZE, HIDDEN, KEY_HEADS, LAYERS,
  LAYER_FIXED, LAYER_FIXED_STRIDE, LAYER_PANELS, LAYER_PANEL_STRIDE, PADDED_VOCABULARY, PANELS,
  PARAMETERS, PLAN, SCRATCH, SCRATCH_BYTES, SINES, VOCABULARY, WIDTH, WINDOWS,
} from './layout'

export let width: usize = 0
export let layers: usize = 0
export let heads: usize = 0
export let keyHeads: usize = 0
export let headSize: usize = 0
export let hidden: usize = 0
export let vocabulary: usize = 0
export let paddedVocabulary: usize = 0
export let context: usize = 0
export let panels: usize = 0
export let cosines: usize = 0
export let sines: usize = 0
export let scratch: usize = 0
export let scoreScale: f32 = 0

/** Whether the weights stay, and whether they are bf16. */
export let isFrozen: bool = false
export let hasHalves: bool = false

/** Heads of queries that share one head of keys and values. */
export let group: usize = 0

/** Numbers of a token's queries, of its keys, and of its queries, keys and values together. */
export let queryWidth: usize = 0
export let keyWidth: usize = 0
export let side: usize = 0

/** `BLOCK` as an unsigned number. */
export const blockTokens: usize = BLOCK

/** Bytes of one layer's keys, or values, in one block. */
export let blockHalf: usize = 0

/** Takes over the plan; `thread` chooses the scratch of this instance. */
export function configure(thread: i32): void {
  width = word(WIDTH)
  layers = word(LAYERS)
  heads = word(HEADS)
  keyHeads = word(KEY_HEADS)
  headSize = word(HEAD_SIZE)
  hidden = word(HIDDEN)
  vocabulary = word(VOCABULARY)
  paddedVocabulary = word(PADDED_VOCABULARY)
  context = word(CONTEXT)
  panels = word(PANELS)
  cosines = word(COSINES)
  sines = word(SINES)
  scratch = word(SCRATCH) + <usize>thread * word(SCRATCH_BYTES)
  scoreScale = <f32>1 / sqrt<f32>(<f32>headSize)
  isFrozen = word(FROZEN) != 0
  hasHalves = word(HALVES) != 0
  group = heads / keyHeads
  queryWidth = heads * headSize
  keyWidth = keyHeads * headSize
  side = queryWidth + 2 * keyWidth
  blockHalf = (blockTokens * keyWidth) << 2
}

/** The word of the plan at a byte offset. */
export function word(offset: usize): usize {
  return <usize>load<u32>(offset + PLAN)
}

/** Where what is trained lies: an adapter may come later than the threads. */
// @ts-ignore: decorator
@inline
export function trained(): usize {
  return word(PARAMETERS)
}

/** The float of the plan at a byte offset. */
export function float(offset: usize): f32 {
  return load<f32>(offset + PLAN)
}

/** Where a layer's norms and biases lie. */
export function fixedOf(layer: usize): usize {
  return word(FIXED) + word(LAYER_FIXED) + layer * word(LAYER_FIXED_STRIDE)
}

/** Where a layer's panels lie. */
export function panelsOf(layer: usize): usize {
  return panels + word(LAYER_PANELS) + layer * word(LAYER_PANEL_STRIDE)
}

/** The first position that a query at `position` sees in a layer. */
export function firstSeen(layer: usize, position: usize): usize {
  const windows = word(WINDOWS)
  if (windows == 0) return 0
  const window = <usize>load<u32>(windows + (layer << 2))
  return window == 0 || position < window ? 0 : position - window + 1
}
