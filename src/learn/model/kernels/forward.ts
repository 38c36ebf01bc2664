// The forward pass of a job: tokens of any number of sequences, each with its blocks of keys and
// values, through all layers; then the distributions of the rows that want one.

import {
  attended, finalRoots, gateUps, inputs, layerStride, middles, normed, opened, outputs, ownLogits,
  placeKept, placeScratch, projected, roots1, roots2, rowPanels, scores, statistics, weights,
} from './activations'
import { attend, storeKeys } from './attention'
import { attendRow } from './attention-rows'
import { distribute } from './head'
import {
  DOWN_PANELS, FINAL_NORM, GATE_UP_PANELS, HEAD_PANELS, JOB_ACTIVATIONS, JOB_BLOCKS, JOB_IDS,
  JOB_LOGITS, JOB_RETAIN, JOB_ROWS, JOB_ROW_LIST, JOB_SPANS, JOB_SPAN_LIST,
  JOB_TOKENS, LAYER_PANELS, LAYER_PANEL_STRIDE, LAYER_PARAMETERS, LAYER_PARAMETER_STRIDE, NORM_1,
  NORM_2, OUT_PANELS, QKV_PANELS, ROW_BYTES, ROW_TOKEN, SPAN_BYTES,
} from './layout'
import { gatedUnit, norm } from './pieces'
import { hidden, layers, paddedVocabulary, panels, parameters, scratch, width, word } from './plan'
import { project } from './wide'

/** Places a job's activations, and its scratch behind them when they lie in the thread's own. */
export function place(job: usize, backward: bool): void {
  const tokens = field(job, JOB_TOKENS)
  const own = field(job, JOB_ACTIVATIONS)
  const end = placeKept(
    own == 0 ? scratch : own, tokens, field(job, JOB_ROWS), field(job, JOB_RETAIN) != 0,
  )
  placeScratch(own == 0 ? end : scratch, tokens, backward)
}

/** A word of a job. */
// @ts-ignore: decorator
@inline
export function field(job: usize, offset: usize): usize {
  return <usize>load<u32>(job + offset)
}

/** Where a job's logits lie; its activations have been placed. */
export function logitsOf(job: usize): usize {
  const given = field(job, JOB_LOGITS)
  return given == 0 ? ownLogits : given
}

/** Runs the forward pass of a job. */
export function forward(job: usize): void {
  place(job, false)
  pass(job)
}

/** The forward pass itself; activations have been placed. */
export function pass(job: usize): void {
  const tokens = field(job, JOB_TOKENS)
  embed(field(job, JOB_IDS), tokens)
  for (let layer: usize = 0; layer < layers; layer++) passLayer(job, layer, tokens)
  passHead(job)
}

function embed(ids: usize, tokens: usize): void {
  for (let token: usize = 0; token < tokens; token++) {
    const id = <usize>load<u32>(ids + (token << 2))
    memory.copy(inputs + token * (width << 2), parameters + id * (width << 2), width << 2)
  }
}

function passLayer(job: usize, layer: usize, tokens: usize): void {
  const offset = layer * layerStride
  const weight = parameters + word(LAYER_PARAMETERS) + layer * word(LAYER_PARAMETER_STRIDE)
  const packed = panels + word(LAYER_PANELS) + layer * word(LAYER_PANEL_STRIDE)
  const middle = middles + offset
  norm(inputs + offset, weight + word(NORM_1), normed, roots1 + offset, tokens)
  project(normed, packed + word(QKV_PANELS), projected + offset, tokens, width, width * 3, false)
  attendAll(job, layer, offset)
  memory.copy(middle, inputs + offset, tokens * width << 2)
  project(attended + offset, packed + word(OUT_PANELS), middle, tokens, width, width, true)
  for (let first: usize = 0; first < tokens; first += STRIP) {
    passGate(first, min(STRIP, tokens - first), offset, weight, packed)
  }
}

/** Tokens that go through the gated unit at a time, whole tiles: what they leave is still in the cache. */
export const STRIP: usize = 66

/** The gated unit of `count` tokens from `first` on. */
function passGate(
  first: usize, count: usize, offset: usize, weight: usize, packed: usize,
): void {
  const middle = middles + offset + first * (width << 2)
  const output = inputs + offset + layerStride + first * (width << 2)
  const gateUp = gateUps + offset + first * (hidden << 3)
  norm(middle, weight + word(NORM_2), normed, roots2 + offset + (first << 2), count)
  project(normed, packed + word(GATE_UP_PANELS), gateUp, count, width, hidden * 2, false)
  gatedUnit(gateUp, opened, count)
  memory.copy(output, middle, count * width << 2)
  project(opened, packed + word(DOWN_PANELS), output, count, hidden, width, true)
}

function attendAll(job: usize, layer: usize, offset: usize): void {
  const blocks = field(job, JOB_BLOCKS)
  const list = field(job, JOB_SPAN_LIST)
  const spans = field(job, JOB_SPANS)
  for (let index: usize = 0; index < spans; index++) {
    const span = list + index * SPAN_BYTES
    if (blocks == 0) {
      attendRow(
        span, projected + offset, attended + offset, statistics + offset, scores, rowPanels,
      )
    } else {
      storeKeys(span, layer, blocks, projected + offset)
      attend(
        span, layer, blocks, projected + offset, attended + offset, statistics + offset, scores,
      )
    }
  }
}

function passHead(job: usize): void {
  const rows = field(job, JOB_ROWS)
  const list = field(job, JOB_ROW_LIST)
  const logits = logitsOf(job)
  for (let index: usize = 0; index < rows; index++) {
    const token = <usize>load<u32>(list + index * ROW_BYTES, ROW_TOKEN)
    norm(
      outputs + token * (width << 2), parameters + word(FINAL_NORM),
      normed + index * (width << 2), finalRoots + (index << 2), 1,
    )
  }
  project(normed, panels + word(HEAD_PANELS), logits, rows, width, paddedVocabulary, false)
  for (let index: usize = 0; index < rows; index++) {
    distribute(logits + index * (paddedVocabulary << 2), list + index * ROW_BYTES, weights)
  }
}
