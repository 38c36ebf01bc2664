// The forward pass of a job in stages: stage 0 ends with the first layer's queries, keys and values,
// each later one begins with attention over them. A job whose spans follow spans of other jobs runs
// stage by stage beside these; any other runs them all at once.

import {
  attended, finalRoots, gateUps, inputStride, inputs, keepsLogits, layerStride, lowRank, middles, normed,
  opened, outputs, ownLogits, placeKept, placeScratch, projected, projectedOf, projectedTurn, rawHeads,
  roots1, roots2, rowPanels, scores, statistics, stripLogits, stripRows, unpacked, weights,
} from './activations'
import { ATTENDED, DOWN_MAP, GATE, KEY, QUERY, UP, VALUE, addAdapter } from './adapter'
import { attend, storeKeys } from './attention'
import { attendSpans, field } from './attention-rows'
import { numberOf, panelBytes, projectFrozen } from './frozen'
import { distribute } from './head'
import {
  DOWN_BIAS, DOWN_PANELS, EMBEDDING, EMBEDDING_SCALE, FINAL_NORM, FIXED, GATE_UP_BIAS, GATE_UP_PANELS,
  HEAD_PANELS, JOB_ACTIVATIONS, JOB_BLOCKS, JOB_FIRST, JOB_IDS, JOB_KEEP, JOB_LAST, JOB_LOGITS,
  JOB_PROJECTED, JOB_ROWS, JOB_ROW_LIST, JOB_SPANS, JOB_SPAN_LIST, JOB_STRIDE, JOB_TOKENS, JOB_TURN,
  KEEP_NOTHING, NORM_1, NORM_2, OUT_BIAS, OUT_PANELS, QKV_BIAS, QKV_PANELS, QUERY_NORM, ROW_BYTES,
  ROW_TOKEN, SPAN_BYTES, SPAN_COUNT, SPAN_POSITION, SPAN_START,
} from './layout'
import { addBias, gatedUnit, norm, normHeads, rotate } from './pieces'
import {
  fixedOf, float, hasHalves, hidden, isFrozen, keyWidth, layers, paddedVocabulary, panels, panelsOf,
  queryWidth, scratch, side, width, word,
} from './plan'
import { project, wideColumns } from './wide'

/** Places a job's activations, and its scratch behind them when they lie in the thread's own. */
export function place(job: usize, backward: bool): void {
  const tokens = field(job, JOB_TOKENS)
  const own = field(job, JOB_ACTIVATIONS)
  const end = placeKept(
    own == 0 ? scratch : own, tokens, field(job, JOB_ROWS), <i32>field(job, JOB_KEEP),
  )
  placeScratch(own == 0 ? end : scratch, tokens, backward)
  store<u32>(job, <u32>projected, JOB_PROJECTED)
  store<u32>(job, <u32>layerStride, JOB_STRIDE)
  store<u32>(job, <u32>projectedTurn, JOB_TURN)
}

/** x · weights, for weights that are trained or stay. */
export function multiplyWeights(
  x: usize, weight: usize, y: usize, rows: usize, inner: usize, columns: usize, add: bool,
): void {
  if (isFrozen) projectFrozen(x, weight, y, rows, inner, columns, add, unpacked)
  else project(x, weight, y, rows, inner, columns, add)
}

/** Runs a job's stages of the forward pass. */
export function forward(job: usize): void {
  place(job, false)
  const tokens = field(job, JOB_TOKENS)
  for (let stage = field(job, JOB_FIRST); stage <= field(job, JOB_LAST); stage++) {
    if (stage == 0) embed(field(job, JOB_IDS), tokens)
    else mix(job, stage - 1, tokens)
    if (stage < layers) projectQueries(job, stage, tokens)
    else passHead(job)
  }
}

function embed(ids: usize, tokens: usize): void {
  const table = word(EMBEDDING)
  const size = panelBytes(width)
  for (let token: usize = 0; token < tokens; token++) {
    const id = <usize>load<u32>(ids + (token << 2))
    const row = inputs + token * (width << 2)
    if (table == 0) gatherColumn(id, row)
    else if (!hasHalves) memory.copy(row, table + id * size, size)
    else {
      for (let at: usize = 0; at < width; at++) {
        store<f32>(row + (at << 2), numberOf(table + id * size, at))
      }
    }
    if (float(EMBEDDING_SCALE) != 1) scaleEmbedding(row)
  }
}

function scaleEmbedding(row: usize): void {
  const scale = f32x4.splat(float(EMBEDDING_SCALE))
  for (let at: usize = 0; at < width << 2; at += 16) {
    v128.store(row + at, f32x4.mul(v128.load(row + at), scale))
  }
}

/** A token's embedding out of the panels of the head. */
function gatherColumn(id: usize, row: usize): void {
  const wide = wideColumns(paddedVocabulary)
  const across: usize = id < wide ? 12 : 8
  const within = id < wide ? id % 12 : (id - wide) % 8
  const panel = panels + word(HEAD_PANELS) + panelBytes((id - within) * width)
  for (let at: usize = 0; at < width; at++) {
    store<f32>(row + (at << 2), numberOf(panel, at * across + within))
  }
}

/** From a layer's inputs to its queries, keys and values, turned by their positions. */
export function projectQueries(job: usize, layer: usize, tokens: usize): void {
  const offset = layer * layerStride
  const fixed = fixedOf(layer)
  const qkv = projectedOf(layer)
  norm(inputs + layer * inputStride, fixed + word(NORM_1), normed, roots1 + offset, tokens)
  multiplyWeights(normed, panelsOf(layer) + word(QKV_PANELS), qkv, tokens, width, side, false)
  if (word(QKV_BIAS) != 0) addBias(qkv, fixed + word(QKV_BIAS), tokens, side)
  const key = qkv + (queryWidth << 2)
  addAdapter(layer, QUERY, normed, width, qkv, side << 2, tokens, queryWidth, lowRank)
  addAdapter(layer, KEY, normed, width, key, side << 2, tokens, keyWidth, lowRank)
  addAdapter(layer, VALUE, normed, width, key + (keyWidth << 2), side << 2, tokens, keyWidth, lowRank)
  if (word(QUERY_NORM) != 0) normHeads(layer, tokens, qkv, rawHeads + offset)
  turnAll(job, qkv, 1)
}

/** Turns the queries and keys of all spans by their positions. */
export function turnAll(job: usize, qkv: usize, sign: f32): void {
  const list = field(job, JOB_SPAN_LIST)
  const end = list + field(job, JOB_SPANS) * SPAN_BYTES
  for (let span = list; span < end; span += SPAN_BYTES) {
    const first = field(span, SPAN_POSITION)
    const row = qkv + field(span, SPAN_START) * (side << 2)
    for (let index: usize = 0; index < field(span, SPAN_COUNT); index++) {
      rotate(row + index * (side << 2), first + index, sign)
    }
  }
}

/** From a layer's queries, keys and values to the next layer's inputs. */
function mix(job: usize, layer: usize, tokens: usize): void {
  const input = inputs + layer * inputStride
  attendAll(job, layer, tokens)
  passOut(layer, input, tokens)
  for (let first: usize = 0; first < tokens; first += STRIP) {
    passGate(layer, first, min(STRIP, tokens - first), input + inputStride)
  }
}

/** A layer's activations behind its attention once more. */
export function mixAgain(job: usize, layer: usize, tokens: usize): void {
  attendAll(job, layer, tokens)
  passOut(layer, inputs + layer * inputStride, tokens)
  for (let first: usize = 0; first < tokens; first += STRIP) {
    openGates(layer, first, min(STRIP, tokens - first))
  }
}

function passOut(layer: usize, input: usize, tokens: usize): void {
  const offset = layer * layerStride
  const middle = middles + offset
  const from = attended + offset
  memory.copy(middle, input, tokens * width << 2)
  multiplyWeights(
    from, panelsOf(layer) + word(OUT_PANELS), middle, tokens, queryWidth, width, true,
  )
  if (word(OUT_BIAS) != 0) addBias(middle, fixedOf(layer) + word(OUT_BIAS), tokens, width)
  addAdapter(layer, ATTENDED, from, queryWidth, middle, width << 2, tokens, width, lowRank)
}

/** Tokens that go through the gated unit at a time, whole tiles: what they leave is still in the cache. */
export const STRIP: usize = 66

/** What goes into the gated unit of `count` tokens from `first` on. */
function openGates(layer: usize, first: usize, count: usize): void {
  const offset = layer * layerStride
  const fixed = fixedOf(layer)
  const gateUp = gateUps + offset + first * (hidden << 3)
  const stride = hidden << 3
  norm(
    middles + offset + first * (width << 2), fixed + word(NORM_2), normed,
    roots2 + offset + (first << 2), count,
  )
  multiplyWeights(
    normed, panelsOf(layer) + word(GATE_UP_PANELS), gateUp, count, width, hidden * 2, false,
  )
  if (word(GATE_UP_BIAS) != 0) addBias(gateUp, fixed + word(GATE_UP_BIAS), count, hidden * 2)
  addAdapter(layer, GATE, normed, width, gateUp, stride, count, hidden, lowRank)
  addAdapter(layer, UP, normed, width, gateUp + (hidden << 2), stride, count, hidden, lowRank)
}

/** The gated unit of `count` tokens from `first` on. */
function passGate(layer: usize, first: usize, count: usize, outputRows: usize): void {
  const offset = layer * layerStride
  const output = outputRows + first * (width << 2)
  openGates(layer, first, count)
  gatedUnit(gateUps + offset + first * (hidden << 3), opened, count)
  memory.copy(output, middles + offset + first * (width << 2), count * width << 2)
  multiplyWeights(
    opened, panelsOf(layer) + word(DOWN_PANELS), output, count, hidden, width, true,
  )
  if (word(DOWN_BIAS) != 0) addBias(output, fixedOf(layer) + word(DOWN_BIAS), count, width)
  addAdapter(layer, DOWN_MAP, opened, hidden, output, width << 2, count, width, lowRank)
}

function attendAll(job: usize, layer: usize, tokens: usize): void {
  const blocks = field(job, JOB_BLOCKS)
  const offset = layer * layerStride
  const out = attended + offset
  const stats = statistics + offset
  if (blocks == 0) return attendSpans(job, layer, out, stats, scores, rowPanels)
  const list = field(job, JOB_SPAN_LIST)
  const qkv = projectedOf(layer)
  for (let index: usize = 0; index < field(job, JOB_SPANS); index++) {
    const span = list + index * SPAN_BYTES
    storeKeys(span, layer, blocks, qkv)
    attend(span, layer, blocks, qkv, out, stats, scores)
  }
}

/** Whether all logits of a job lie in one place, and not strip by strip. */
function hasAllLogits(job: usize): bool {
  return field(job, JOB_LOGITS) != 0 ||
    field(job, JOB_KEEP) != KEEP_NOTHING && keepsLogits(field(job, JOB_ROWS))
}

/** Where the logits of a strip from row `first` on lie. */
export function logitsAt(job: usize, first: usize): usize {
  if (!hasAllLogits(job)) return stripLogits
  const given = field(job, JOB_LOGITS)
  return (given == 0 ? ownLogits : given) + first * (paddedVocabulary << 2)
}

function passHead(job: usize): void {
  const rows = field(job, JOB_ROWS)
  const list = field(job, JOB_ROW_LIST)
  const size = stripRows()
  for (let first: usize = 0; first < rows; first += size) {
    const count = min(size, rows - first)
    const logits = logitsAt(job, first)
    computeLogits(job, first, count)
    for (let index: usize = 0; index < count; index++) {
      distribute(
        logits + index * (paddedVocabulary << 2), list + (first + index) * ROW_BYTES, weights,
      )
    }
  }
}

/** The logits of `count` rows from `first` on. */
export function computeLogits(job: usize, first: usize, count: usize): void {
  const list = field(job, JOB_ROW_LIST)
  for (let index: usize = 0; index < count; index++) {
    const token = field(list + (first + index) * ROW_BYTES, ROW_TOKEN)
    norm(
      outputs + token * (width << 2), word(FIXED) + word(FINAL_NORM),
      normed + index * (width << 2), finalRoots + (first + index << 2), 1,
    )
  }
  multiplyWeights(
    normed, panels + word(HEAD_PANELS), logitsAt(job, first), count, width, paddedVocabulary, false,
  )
}
