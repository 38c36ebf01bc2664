// The backward pass of a job: from the gradients of its rows' log-probabilities and entropies to
// the gradient of every parameter, added to one lane.

import {
  attended, attentionScratch, dGateUps, dInputs, dNormed, dOpened, dOut, dProjected, finalRoots,
  gateUps, inputs, layerStride, middles, normed, opened, outputs, productScratch, projected, roots1,
  roots2, statistics,
} from './activations'
import { attendBackward } from './attention-backward'
import { STRIP, field, logitsOf, pass, place } from './forward'
import { distributeBackward } from './head'
import {
  DOWN, DOWN_TURNED, EMBEDDING_PANELS, FINAL_NORM, GATE_UP, GATE_UP_TURNED, JOB_IDS, JOB_LANE,
  JOB_RECOMPUTE, JOB_ROWS, JOB_ROW_LIST, JOB_SPANS, JOB_SPAN_LIST, JOB_TOKENS, LAYER_PANELS,
  LAYER_PANEL_STRIDE, LAYER_PARAMETERS, LAYER_PARAMETER_STRIDE, NORM_1, NORM_2, OUT, OUT_TURNED,
  QKV, QKV_TURNED, ROW_BYTES, ROW_TOKEN, SPAN_BYTES,
} from './layout'
import { gatedUnitBackward, normAgain, normBackward } from './pieces'
import { hidden, layers, paddedVocabulary, panels, parameters, width, word } from './plan'
import { addGradient, project } from './wide'

/** Whether weights' gradients are added to what the lane holds; the lane's first job writes over it. */
let adds: bool = false

/** Runs the backward pass of a job, after its forward pass where that was not kept. */
export function backward(job: usize, isFirst: bool): void {
  adds = !isFirst
  if (isFirst) clearNorms(field(job, JOB_LANE))
  place(job, true)
  if (field(job, JOB_RECOMPUTE) != 0) pass(job)
  const tokens = field(job, JOB_TOKENS)
  const lane = field(job, JOB_LANE)
  headBackward(job, tokens, lane)
  for (let layer = layers; layer > 0; layer--) layerBackward(job, layer - 1, tokens, lane)
  embedBackward(field(job, JOB_IDS), tokens, lane)
}

/** Norms' gradients are sums over tokens from the start. */
function clearNorms(lane: usize): void {
  const first = lane + word(LAYER_PARAMETERS)
  for (let layer: usize = 0; layer < layers; layer++) {
    const at = first + layer * word(LAYER_PARAMETER_STRIDE)
    memory.fill(at + word(NORM_1), 0, width << 2)
    memory.fill(at + word(NORM_2), 0, width << 2)
  }
  memory.fill(lane + word(FINAL_NORM), 0, width << 2)
}

function headBackward(job: usize, tokens: usize, lane: usize): void {
  const rows = field(job, JOB_ROWS)
  const list = field(job, JOB_ROW_LIST)
  const logits = logitsOf(job)
  const side = width << 2
  const weight = parameters + word(FINAL_NORM)
  for (let index: usize = 0; index < rows; index++) {
    const token = <usize>load<u32>(list + index * ROW_BYTES, ROW_TOKEN)
    distributeBackward(logits + index * (paddedVocabulary << 2), list + index * ROW_BYTES)
    normAgain(outputs + token * side, weight, normed + index * side, finalRoots + (index << 2), 1)
  }
  addGradient(logits, normed, lane, rows, paddedVocabulary, width, productScratch, adds)
  project(
    logits, panels + word(EMBEDDING_PANELS), dNormed, rows, paddedVocabulary, width, false,
  )
  memory.fill(dInputs, 0, tokens * side)
  for (let index: usize = 0; index < rows; index++) {
    const token = <usize>load<u32>(list + index * ROW_BYTES, ROW_TOKEN)
    normBackward(
      outputs + token * side, weight, load<f32>(finalRoots + (index << 2)),
      dNormed + index * side, dInputs + token * side, lane + word(FINAL_NORM),
    )
  }
}

/** Through a norm: adds to `dInputs`, the gradient of the residual stream, and to the weight's. */
function normsBackward(
  x: usize, weight: usize, roots: usize, dWeight: usize, tokens: usize,
): void {
  for (let token: usize = 0; token < tokens; token++) {
    const offset = token * (width << 2)
    normBackward(
      x + offset, weight, load<f32>(roots + (token << 2)), dNormed + offset, dInputs + offset,
      dWeight,
    )
  }
}

/** Through the gated unit of `count` tokens from `first` on, to the gradient of its inputs. */
function gateBackward(first: usize, count: usize, gateUp: usize, turned: usize): void {
  const width4 = width << 2
  const hidden4 = hidden << 2
  const slopes = dGateUps + first * (hidden4 << 1)
  project(
    dInputs + first * width4, turned + word(DOWN_TURNED), dOpened, count, width, hidden, false,
  )
  gatedUnitBackward(
    gateUp + first * (hidden4 << 1), dOpened, opened + first * hidden4, slopes, count,
  )
  project(
    slopes, turned + word(GATE_UP_TURNED), dNormed + first * width4, count, hidden * 2, width,
    false,
  )
}

function layerBackward(job: usize, layer: usize, tokens: usize, lane: usize): void {
  const offset = layer * layerStride
  const at = word(LAYER_PARAMETERS) + layer * word(LAYER_PARAMETER_STRIDE)
  const turned = panels + word(LAYER_PANELS) + layer * word(LAYER_PANEL_STRIDE)
  const weight = parameters + at
  const gradient = lane + at
  for (let first: usize = 0; first < tokens; first += STRIP) {
    gateBackward(first, min(STRIP, tokens - first), gateUps + offset, turned)
  }
  addGradient(
    opened, dInputs, gradient + word(DOWN), tokens, hidden, width, productScratch, adds,
  )
  normAgain(middles + offset, weight + word(NORM_2), normed, roots2 + offset, tokens)
  addGradient(
    normed, dGateUps, gradient + word(GATE_UP), tokens, width, hidden * 2, productScratch, adds,
  )
  normsBackward(
    middles + offset, weight + word(NORM_2), roots2 + offset, gradient + word(NORM_2), tokens,
  )
  addGradient(
    attended + offset, dInputs, gradient + word(OUT), tokens, width, width, productScratch, adds,
  )
  project(dInputs, turned + word(OUT_TURNED), dOut, tokens, width, width, false)
  const list = field(job, JOB_SPAN_LIST)
  for (let index: usize = 0; index < field(job, JOB_SPANS); index++) {
    attendBackward(
      list + index * SPAN_BYTES, projected + offset, attended + offset, statistics + offset, dOut,
      dProjected, attentionScratch,
    )
  }
  normAgain(inputs + offset, weight + word(NORM_1), normed, roots1 + offset, tokens)
  addGradient(
    normed, dProjected, gradient + word(QKV), tokens, width, width * 3, productScratch, adds,
  )
  project(dProjected, turned + word(QKV_TURNED), dNormed, tokens, width * 3, width, false)
  normsBackward(
    inputs + offset, weight + word(NORM_1), roots1 + offset, gradient + word(NORM_1), tokens,
  )
}

function embedBackward(ids: usize, tokens: usize, lane: usize): void {
  for (let token: usize = 0; token < tokens; token++) {
    const id = <usize>load<u32>(ids + (token << 2))
    const target = lane + id * (width << 2)
    const from = dInputs + token * (width << 2)
    for (let at: usize = 0; at < width << 2; at += 16) {
      v128.store(target + at, f32x4.add(v128.load(target + at), v128.load(from + at)))
    }
  }
}
