// Where a job's activations lie: one bump allocation, walked in the same order by the kernels that
// use it and by the engine that asks how large it is.

import { adapterScratch } from './adapter'
import { backwardScratch } from './attention-backward'
import { rowScratch } from './attention-rows'
import { frozenScratch } from './frozen'
import { headScratch } from './head'
import { KEEP_ALL, KEEP_NOTHING, QUERY_NORM } from './layout'
import {
  blockTokens, context, heads, hidden, isFrozen, keyWidth, layers, paddedVocabulary, queryWidth, side,
  width, word,
} from './plan'
import { gradientScratch } from './wide'

// Per layer, `layerStride` apart; inputs `inputStride` apart (0 if layers take turns in one place).
export let inputs: usize = 0
export let projected: usize = 0
export let attended: usize = 0
export let middles: usize = 0
export let gateUps: usize = 0
export let statistics: usize = 0
export let roots1: usize = 0
export let roots2: usize = 0
/** Queries and keys before their norms, if they have any. */
export let rawHeads: usize = 0
export let layerStride: usize = 0
export let inputStride: usize = 0
/** From one layer's `projected` to the next one's, if they take turns. */
export let projectedTurn: usize = 0

// Once per job.
export let outputs: usize = 0
export let finalRoots: usize = 0
export let ownLogits: usize = 0
export let dInputs: usize = 0
export let dProjected: usize = 0

// Scratch of the forward pass.
export let normed: usize = 0
export let opened: usize = 0
export let scores: usize = 0
export let rowPanels: usize = 0
export let weights: usize = 0
export let stripLogits: usize = 0
export let unpacked: usize = 0
export let lowRank: usize = 0

// Scratch of the backward pass.
export let dNormed: usize = 0
export let dOpened: usize = 0
export let dGateUps: usize = 0
export let dOut: usize = 0
export let productScratch: usize = 0
export let attentionScratch: usize = 0

let end: usize = 0

function take(floats: usize): usize {
  const start = end
  end += (floats << 2) + 63 & ~63
  return start
}

/** Floats of logits that lie in memory at a time: rows beyond that are computed again. */
const LOGITS: usize = 2097152

/** Rows of logits that are computed together: whole tiles. */
export function stripRows(): usize {
  return min<usize>(max<usize>(LOGITS / paddedVocabulary / 12 * 12, 12), 768)
}

/** Whether the logits of so many rows stay for the backward pass. */
export function keepsLogits(rows: usize): bool {
  return rows <= stripRows()
}

/** Places what a job keeps: each layer's activations, outputs and logits. */
export function placeKept(base: usize, tokens: usize, rows: usize, keep: i32): usize {
  end = base
  inputs = take(tokens * width)
  inputStride = keep == KEEP_NOTHING ? 0 : end - inputs
  end += inputStride * layers
  outputs = inputs + inputStride * layers
  const first = end
  projected = take(tokens * side)
  projectedTurn = keep == KEEP_ALL ? 0 : end - projected
  end += projectedTurn
  attended = take(tokens * queryWidth)
  middles = take(tokens * width)
  gateUps = take(tokens * hidden * 2)
  statistics = take(tokens * heads * 2)
  roots1 = take(tokens)
  roots2 = take(tokens)
  rawHeads = take(word(QUERY_NORM) == 0 ? 0 : tokens * (queryWidth + keyWidth))
  layerStride = keep == KEEP_ALL ? end - first : 0
  end = first + max(end - first, layerStride * layers)
  finalRoots = take(rows)
  if (keep != KEEP_NOTHING) {
    ownLogits = take(keepsLogits(rows) ? rows * paddedVocabulary : 0)
    dInputs = take(tokens * width)
    dProjected = take(tokens * side)
  }
  return end
}

/** A layer's queries, keys and values. */
export function projectedOf(layer: usize): usize {
  return projected + layer * layerStride + (layer & 1) * projectedTurn
}

/** Places what a pass needs only while it runs. */
export function placeScratch(base: usize, tokens: usize, backward: bool): usize {
  end = base
  normed = take(max(tokens, stripRows()) * width)
  opened = take(tokens * hidden)
  scores = take(max(blockTokens, heads) * (context + blockTokens))
  rowPanels = take(rowScratch())
  weights = take(headScratch())
  stripLogits = take(stripRows() * paddedVocabulary)
  unpacked = take(frozenScratch())
  lowRank = take(adapterScratch(tokens, backward))
  if (!backward) return end
  dNormed = take(max(tokens, stripRows()) * width)
  dOpened = take(tokens * hidden)
  dGateUps = take(tokens * hidden * 2)
  dOut = take(tokens * queryWidth)
  productScratch = take(isFrozen ? 0 : gradientScratch(
    max(max(width, hidden), paddedVocabulary), max(max(width * 3, hidden * 2), paddedVocabulary),
  ))
  attentionScratch = take(backwardScratch())
  return end
}

/** Bytes of what a job keeps. */
export function keptBytes(tokens: i32, rows: i32, keep: i32): usize {
  return placeKept(0, tokens, rows, keep)
}

/** Bytes of what a pass needs only while it runs. */
export function scratchBytes(tokens: i32, backward: bool): usize {
  return placeScratch(0, tokens, backward)
}
