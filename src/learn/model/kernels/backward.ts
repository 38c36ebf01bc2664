// The backward pass of a job in stages. Stage 0 goes from the gradients of its rows' log-probabilities
// and entropies through the head; then each layer has two: from its outputs through its attention, and
// from queries, keys and values to its inputs. Gradients of what is trained are added to one lane.

import {
  attended, attentionScratch, dGateUps, dInputs, dNormed, dOpened, dOut, dProjected, finalRoots,
  gateUps, inputStride, inputs, keepsLogits, layerStride, lowRank, middles, normed, opened, outputs,
  productScratch, rawHeads, roots1, roots2, stripRows, unpacked,
} from './activations'
import { ATTENDED, DOWN_MAP, GATE, KEY, QUERY, UP, VALUE, adapterBackward } from './adapter'
import { addHeirs, attendBackward } from './attention-backward'
import { field } from './attention-rows'
import {
  STRIP, computeLogits, logitsAt, mixAgain, place, projectQueries, turnAll,
} from './forward'
import { projectTurned } from './frozen'
import { distributeBackward, temper } from './head'
import {
  DOWN, DOWN_PANELS, DOWN_TURNED, EMBEDDING_PANELS, FINAL_NORM, FIXED, GATE_UP, GATE_UP_PANELS,
  GATE_UP_TURNED, HEAD_PANELS, JOB_FIRST, JOB_IDS, JOB_KEEP, JOB_LANE, JOB_LAST, JOB_ROWS,
  JOB_ROW_LIST, JOB_TOKENS, KEEP_INPUTS, LAYER_FIXED, LAYER_FIXED_STRIDE, NORM_1, NORM_2, OUT,
  OUT_PANELS, OUT_TURNED, PARAMETER_BYTES, QKV, QKV_PANELS, QKV_TURNED, QUERY_NORM, ROW_BYTES,
  ROW_INVERSE_TEMPERATURE, ROW_TOKEN,
} from './layout'
import {
  gatedUnit, gatedUnitBackward, normAgain, normBackward, normHeadsBackward,
} from './pieces'
import {
  fixedOf, hidden, isFrozen, keyWidth, layers, paddedVocabulary, panels, panelsOf, queryWidth, side,
  width, word,
} from './plan'
import { addGradient, project } from './wide'

/** Whether weights' gradients are added to what the lane holds; the lane's first job writes over it. */
let adds: bool = false

/** Where the job adds its gradient. */
let lane: usize = 0

/** Runs a job's stages of the backward pass. */
export function backward(job: usize, isFirst: bool): void {
  adds = !isFirst
  lane = field(job, JOB_LANE)
  place(job, true)
  const tokens = field(job, JOB_TOKENS)
  const computesAgain = field(job, JOB_KEEP) == KEEP_INPUTS
  for (let stage = field(job, JOB_FIRST); stage <= field(job, JOB_LAST); stage++) {
    const layer = layers - (stage >> 1)
    if (stage & 1) {
      if (computesAgain) mixAgain(job, layer - 1, tokens)
      throughAttention(job, layer - 1, tokens)
      continue
    }
    if (stage == 0) startBackward(job, tokens, isFirst)
    else throughQueries(job, layer, tokens)
    if (layer > 0 && computesAgain) projectQueries(job, layer - 1, tokens)
    if (layer == 0) embedBackward(field(job, JOB_IDS), tokens)
  }
}

function startBackward(job: usize, tokens: usize, isFirst: bool): void {
  if (isFirst) {
    if (isFrozen) memory.fill(lane, 0, word(PARAMETER_BYTES))
    else clearNorms()
  }
  memory.fill(dInputs, 0, tokens * width << 2)
  const rows = field(job, JOB_ROWS)
  const size = stripRows()
  for (let first: usize = 0; first < rows; first += size) {
    headBackward(job, first, min(size, rows - first))
  }
}

/** Norms' gradients are sums over tokens from the start. */
function clearNorms(): void {
  const first = lane + word(LAYER_FIXED)
  for (let layer: usize = 0; layer < layers; layer++) {
    const at = first + layer * word(LAYER_FIXED_STRIDE)
    memory.fill(at + word(NORM_1), 0, width << 2)
    memory.fill(at + word(NORM_2), 0, width << 2)
  }
  memory.fill(lane + word(FINAL_NORM), 0, width << 2)
}

/** A weight's gradient, if it is trained. */
function addWeight(
  x: usize, dy: usize, gradient: usize, rows: usize, inner: usize, columns: usize, isAdded: bool,
): void {
  if (isFrozen) return
  addGradient(x, dy, gradient, rows, inner, columns, productScratch, isAdded)
}

/** dx = dy · weightsᵀ: from the weights' own panels, or from those that lie there turned. */
function multiplyBack(
  dy: usize, own: usize, turned: usize, dx: usize, rows: usize, inner: usize, columns: usize,
): void {
  if (isFrozen) projectTurned(dy, own, dx, rows, inner, columns, false, unpacked)
  else project(dy, turned, dx, rows, inner, columns, false)
}

/** Through the head, for `count` rows from `first` on. */
function headBackward(job: usize, first: usize, count: usize): void {
  const list = field(job, JOB_ROW_LIST) + first * ROW_BYTES
  const logits = logitsAt(job, first)
  const bytes = width << 2
  const weight = word(FIXED) + word(FINAL_NORM)
  const isKept = keepsLogits(field(job, JOB_ROWS))
  if (!isKept) computeLogits(job, first, count)
  for (let index: usize = 0; index < count; index++) {
    const row = list + index * ROW_BYTES
    const at = logits + index * (paddedVocabulary << 2)
    if (!isKept) temper(at, load<f32>(row, ROW_INVERSE_TEMPERATURE))
    distributeBackward(at, row)
    normAgain(
      outputs + field(row, ROW_TOKEN) * bytes, weight, normed + index * bytes,
      finalRoots + (first + index << 2), 1,
    )
  }
  addWeight(logits, normed, lane, count, paddedVocabulary, width, adds || first > 0)
  multiplyBack(
    logits, panels + word(HEAD_PANELS), panels + word(EMBEDDING_PANELS), dNormed, count,
    paddedVocabulary, width,
  )
  for (let index: usize = 0; index < count; index++) {
    const token = field(list + index * ROW_BYTES, ROW_TOKEN)
    normBackward(
      outputs + token * bytes, weight, load<f32>(finalRoots + (first + index << 2)),
      dNormed + index * bytes, dInputs + token * bytes, normGradient(0, FINAL_NORM),
    )
  }
}

/** Where a norm's gradient is added; 0 if it is not trained. */
// @ts-ignore: decorator
@inline
function normGradient(layer: usize, norm: usize): usize {
  if (isFrozen) return 0
  return gradientOf(layer, norm)
}

/** Where the gradient of what `offset` names is added: of a layer, or of the last norm. */
function gradientOf(layer: usize, offset: usize): usize {
  if (offset == FINAL_NORM) return lane + word(FINAL_NORM)
  return lane + word(LAYER_FIXED) + layer * word(LAYER_FIXED_STRIDE) + word(offset)
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
function gateBackward(layer: usize, first: usize, count: usize): void {
  const offset = layer * layerStride
  const own = panelsOf(layer)
  const width4 = width << 2
  const hidden4 = hidden << 2
  const slopes = dGateUps + first * (hidden4 << 1)
  const opens = opened + first * hidden4
  const dStream = dInputs + first * width4
  const dInto = dNormed + first * width4
  multiplyBack(
    dStream, own + word(DOWN_PANELS), own + word(DOWN_TURNED), dOpened, count, width, hidden,
  )
  if (isFrozen) {
    // The unit once more: what goes through its adapter comes before its own gradient.
    gatedUnit(gateUps + offset + first * (hidden4 << 1), opens, count)
    adapterBackward(
      layer, DOWN_MAP, opens, hidden, dStream, width4, count, width, dOpened, lane, lowRank,
    )
  }
  gatedUnitBackward(gateUps + offset + first * (hidden4 << 1), dOpened, opens, slopes, count)
  multiplyBack(
    slopes, own + word(GATE_UP_PANELS), own + word(GATE_UP_TURNED), dInto, count, hidden * 2, width,
  )
  if (isFrozen) {
    const x = normed + first * width4
    const stride = hidden4 << 1
    normAgain(
      middles + offset + first * width4, fixedOf(layer) + word(NORM_2), x,
      roots2 + offset + (first << 2), count,
    )
    adapterBackward(layer, GATE, x, width, slopes, stride, count, hidden, dInto, lane, lowRank)
    adapterBackward(layer, UP, x, width, slopes + hidden4, stride, count, hidden, dInto, lane, lowRank)
  }
}

/** From the gradient of a layer's outputs to that of its queries, keys and values. */
function throughAttention(job: usize, layer: usize, tokens: usize): void {
  const offset = layer * layerStride
  const own = panelsOf(layer)
  const fixed = fixedOf(layer)
  for (let first: usize = 0; first < tokens; first += STRIP) {
    gateBackward(layer, first, min(STRIP, tokens - first))
  }
  addWeight(opened, dInputs, gradientOf(layer, DOWN), tokens, hidden, width, adds)
  if (!isFrozen) {
    normAgain(middles + offset, fixed + word(NORM_2), normed, roots2 + offset, tokens)
  }
  addWeight(normed, dGateUps, gradientOf(layer, GATE_UP), tokens, width, hidden * 2, adds)
  normsBackward(
    middles + offset, fixed + word(NORM_2), roots2 + offset, normGradient(layer, NORM_2), tokens,
  )
  addWeight(attended + offset, dInputs, gradientOf(layer, OUT), tokens, queryWidth, width, adds)
  multiplyBack(
    dInputs, own + word(OUT_PANELS), own + word(OUT_TURNED), dOut, tokens, width, queryWidth,
  )
  adapterBackward(
    layer, ATTENDED, attended + offset, queryWidth, dInputs, width << 2, tokens, width, dOut, lane,
    lowRank,
  )
  attendBackward(job, layer, attentionScratch)
}

/** From the gradient of a layer's queries, keys and values to that of its inputs. */
function throughQueries(job: usize, layer: usize, tokens: usize): void {
  const offset = layer * layerStride
  const own = panelsOf(layer)
  const input = inputs + layer * inputStride
  const fixed = fixedOf(layer)
  addHeirs(job, layer)
  turnAll(job, dProjected, -1)
  if (word(QUERY_NORM) != 0) normHeadsBackward(layer, tokens, dProjected, rawHeads + offset)
  normAgain(input, fixed + word(NORM_1), normed, roots1 + offset, tokens)
  addWeight(normed, dProjected, gradientOf(layer, QKV), tokens, width, side, adds)
  multiplyBack(
    dProjected, own + word(QKV_PANELS), own + word(QKV_TURNED), dNormed, tokens, side, width,
  )
  const stride = side << 2
  const key = dProjected + (queryWidth << 2)
  const value = key + (keyWidth << 2)
  adapterBackward(
    layer, QUERY, normed, width, dProjected, stride, tokens, queryWidth, dNormed, lane, lowRank,
  )
  adapterBackward(layer, KEY, normed, width, key, stride, tokens, keyWidth, dNormed, lane, lowRank)
  adapterBackward(layer, VALUE, normed, width, value, stride, tokens, keyWidth, dNormed, lane, lowRank)
  normsBackward(
    input, fixed + word(NORM_1), roots1 + offset, normGradient(layer, NORM_1), tokens,
  )
}

function embedBackward(ids: usize, tokens: usize): void {
  if (isFrozen) return
  for (let token: usize = 0; token < tokens; token++) {
    const id = field(ids, token << 2)
    const target = lane + id * (width << 2)
    const from = dInputs + token * (width << 2)
    for (let at: usize = 0; at < width << 2; at += 16) {
      v128.store(target + at, f32x4.add(v128.load(target + at), v128.load(from + at)))
    }
  }
}
