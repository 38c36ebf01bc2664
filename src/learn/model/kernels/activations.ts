// Where a job's activations lie: one bump allocation, walked in the same order by the kernels that
// use it and by the engine that asks how large it is.

import { backwardScratch } from './attention-backward'
import { rowScratch } from './attention-rows'
import { headScratch } from './head'
import { blockTokens, context, heads, hidden, layers, paddedVocabulary, width } from './plan'
import { gradientScratch } from './wide'

// Per layer, `layerStride` apart (0 when nothing is kept for a backward pass).
export let inputs: usize = 0
export let projected: usize = 0
export let attended: usize = 0
export let middles: usize = 0
export let gateUps: usize = 0
export let statistics: usize = 0
export let roots1: usize = 0
export let roots2: usize = 0
export let layerStride: usize = 0

// Once per job.
export let outputs: usize = 0
export let finalRoots: usize = 0
export let ownLogits: usize = 0

// Scratch of the forward pass.
export let normed: usize = 0
export let opened: usize = 0
export let scores: usize = 0
export let rowPanels: usize = 0
export let weights: usize = 0

// Scratch of the backward pass.
export let dInputs: usize = 0
export let dNormed: usize = 0
export let dOpened: usize = 0
export let dGateUps: usize = 0
export let dProjected: usize = 0
export let dOut: usize = 0
export let productScratch: usize = 0
export let attentionScratch: usize = 0

let end: usize = 0

function take(floats: usize): usize {
  const start = end
  end += (floats << 2) + 63 & ~63
  return start
}

/** Places what a job keeps: each layer's activations, outputs and logits. */
export function placeKept(
  base: usize, tokens: usize, rows: usize, retain: bool,
): usize {
  end = base
  const first = end
  inputs = take(tokens * width)
  projected = take(tokens * width * 3)
  attended = take(tokens * width)
  middles = take(tokens * width)
  gateUps = take(tokens * hidden * 2)
  statistics = take(tokens * heads * 2)
  roots1 = take(tokens)
  roots2 = take(tokens)
  layerStride = retain ? end - first : 0
  outputs = inputs + layers * layerStride
  end = max(end, outputs + (tokens * width << 2) + 63 & ~63)
  finalRoots = take(rows)
  ownLogits = take(rows * paddedVocabulary)
  return end
}

/** Places what a pass needs only while it runs. */
export function placeScratch(base: usize, tokens: usize, backward: bool): usize {
  end = base
  normed = take(tokens * width)
  opened = take(tokens * hidden)
  scores = take(max(blockTokens, heads) * (context + blockTokens))
  rowPanels = take(rowScratch())
  weights = take(headScratch())
  if (!backward) return end
  dInputs = take(tokens * width)
  dNormed = take(tokens * width)
  dOpened = take(tokens * hidden)
  dGateUps = take(tokens * hidden * 2)
  dProjected = take(tokens * width * 3)
  dOut = take(tokens * width)
  productScratch = take(gradientScratch(
    max(max(width, hidden), paddedVocabulary), max(max(width * 3, hidden * 2), paddedVocabulary),
  ))
  attentionScratch = take(backwardScratch())
  return end
}

/** Bytes of what a job keeps. */
export function keptBytes(tokens: i32, rows: i32, retain: bool): usize {
  return placeKept(0, tokens, rows, retain)
}

/** Bytes of what a pass needs only while it runs. */
export function scratchBytes(tokens: i32, backward: bool): usize {
  return placeScratch(0, tokens, backward)
}
