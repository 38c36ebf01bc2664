// From logits to distributions: log-probabilities, entropies, sampled ids, and their gradients.

import {
  ROW_ENTROPY, ROW_ENTROPY_GRADIENT, ROW_GREEDY, ROW_ID, ROW_INVERSE_TEMPERATURE, ROW_LOG_SUM,
  ROW_LOGPROB, ROW_LOGPROB_GRADIENT, ROW_MAXIMUM, ROW_MIN_P, ROW_RANDOM, ROW_TARGET, ROW_TOP_K,
  ROW_TOP_P,
} from './layout'
import { paddedVocabulary, vocabulary } from './plan'
import { exp4, logarithm, madd, maxLanes, sumLanes } from './simd'

/** Below every logit, yet finite: its product with a probability of zero is zero. */
const ABSENT: f32 = -1e30

/** Bytes of weights that are summed in single precision: in a longer sum small ones would be lost. */
const SUMMED: usize = 16384

/** Floats of scratch that `distribute` wants: a weight and a place in the order for each id. */
export function headScratch(): usize {
  return paddedVocabulary * 2
}

/** Divides a row of logits by its temperature, in place, and gives the largest. */
export function temper(logits: usize, inverseTemperature: f32): f32 {
  for (let id = vocabulary; id < paddedVocabulary; id++) store<f32>(logits + (id << 2), ABSENT)
  const factor = f32x4.splat(inverseTemperature)
  let peak = f32x4.splat(ABSENT)
  for (let at: usize = 0; at < paddedVocabulary << 2; at += 16) {
    const value = f32x4.mul(v128.load(logits + at), factor)
    v128.store(logits + at, value)
    peak = f32x4.pmax(peak, value)
  }
  return maxLanes(peak)
}

/**
 * The distribution of one row of logits: writes the row's maximum and logarithm of the sum, the
 * log-probability of its target (or of a sampled id) and the entropy.
 */
export function distribute(logits: usize, row: usize, scratch: usize): void {
  const maximum = temper(logits, load<f32>(row, ROW_INVERSE_TEMPERATURE))
  const shift = f32x4.splat(maximum)
  let total: f64 = 0
  let moments: f64 = 0
  for (let first: usize = 0; first < paddedVocabulary << 2; first += SUMMED) {
    let sum = f32x4.splat(0)
    let moment = f32x4.splat(0)
    for (let at = first; at < min(first + SUMMED, paddedVocabulary << 2); at += 32) {
      const distance1 = f32x4.sub(v128.load(logits + at), shift)
      const distance2 = f32x4.sub(v128.load(logits + at, 16), shift)
      const weight1 = exp4(distance1)
      const weight2 = exp4(distance2)
      v128.store(scratch + at, weight1)
      v128.store(scratch + at, weight2, 16)
      sum = f32x4.add(f32x4.add(sum, weight1), weight2)
      moment = madd(weight2, distance2, madd(weight1, distance1, moment))
    }
    total += <f64>sumLanes(sum)
    moments += <f64>sumLanes(moment)
  }
  const logSum = logarithm(total)
  let id = load<i32>(row, ROW_TARGET)
  if (id < 0) id = choose(row, scratch)
  store<i32>(row, id, ROW_ID)
  store<f32>(row, maximum, ROW_MAXIMUM)
  store<f64>(row, logSum, ROW_LOG_SUM)
  const distance = load<f32>(logits + (<usize>id << 2)) - maximum
  store<f32>(row, <f32>(<f64>distance - logSum), ROW_LOGPROB)
  store<f32>(row, <f32>(logSum - moments / total), ROW_ENTROPY)
}

/** An id drawn from the weights under the row's limits, by its own random number. */
function choose(row: usize, weights: usize): i32 {
  if (load<i32>(row, ROW_GREEDY) != 0) return largest(weights)
  const random = load<f64>(row, ROW_RANDOM)
  const topK = load<i32>(row, ROW_TOP_K)
  const topP = load<f32>(row, ROW_TOP_P)
  const minP = load<f32>(row, ROW_MIN_P)
  if (topK > 0 || topP < 1) return chooseSorted(weights, random, topK, topP, minP)
  if (minP > 0) dropBelow(weights, minP)
  return chooseByWeight(weights, random)
}

function largest(weights: usize): i32 {
  let best: usize = 0
  for (let id: usize = 1; id < vocabulary; id++) {
    if (load<f32>(weights + (id << 2)) > load<f32>(weights + (best << 2))) best = id
  }
  return <i32>best
}

/** Weights are relative to the largest, so the limit of min-p is the weight itself. */
function dropBelow(weights: usize, minP: f32): void {
  for (let id: usize = 0; id < vocabulary; id++) {
    if (load<f32>(weights + (id << 2)) < minP) store<f32>(weights + (id << 2), 0)
  }
}

/** The sum of eight weights in double precision, in one fixed order. */
// @ts-ignore: decorator
@inline
function sumEight(weights: usize): f64 {
  const a = v128.load(weights)
  const b = v128.load(weights, 16)
  const low = f64x2.add(f64x2.promote_low_f32x4(a), f64x2.promote_low_f32x4(b))
  const high = f64x2.add(
    f64x2.promote_low_f32x4(i32x4.shuffle(a, a, 2, 3, 2, 3)),
    f64x2.promote_low_f32x4(i32x4.shuffle(b, b, 2, 3, 2, 3)),
  )
  const sum = f64x2.add(low, high)
  return f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1)
}

/** Walks over eight ids at a time, then over those eight; ids past the vocabulary weigh nothing. */
function chooseByWeight(weights: usize, random: f64): i32 {
  let total: f64 = 0
  for (let id: usize = 0; id < paddedVocabulary; id += 8) total += sumEight(weights + (id << 2))
  const goal = random * total
  let passed: f64 = 0
  for (let id: usize = 0; id < paddedVocabulary; id += 8) {
    const sum = sumEight(weights + (id << 2))
    if (passed + sum > goal) return chooseOfEight(weights, id, goal - passed)
    passed += sum
  }
  return largest(weights)
}

/** The first of eight ids at which their weights pass `goal`, or the last one that weighs anything. */
function chooseOfEight(weights: usize, first: usize, goal: f64): i32 {
  let passed: f64 = 0
  let last = first
  for (let id = first; id < first + 8; id++) {
    const weight = load<f32>(weights + (id << 2))
    if (weight > 0) {
      passed += <f64>weight
      last = id
      if (passed > goal) break
    }
  }
  return <i32>last
}

/** Draws among the `topK` heaviest ids that make up `topP` of their mass, heaviest first. */
function chooseSorted(weights: usize, random: f64, topK: i32, topP: f32, minP: f32): i32 {
  const order = weights + (paddedVocabulary << 2)
  const kept = topK > 0 ? min(<usize>topK, vocabulary) : vocabulary
  heapify(order, weights)
  let size = vocabulary
  let total: f64 = 0
  // Popped ids go to the end of the array, so that the heap shrinks before them.
  while (vocabulary - size < kept) {
    const weight = load<f32>(weights + (<usize>load<i32>(order) << 2))
    if (weight < minP || weight <= 0) break
    total += <f64>weight
    pop(order, --size, weights)
  }
  const limit = total * <f64>topP
  let mass: f64 = 0
  let end = vocabulary
  while (end > size && mass < limit) mass += weightOf(order, weights, --end)
  if (end == vocabulary) mass += weightOf(order, weights, --end)
  const goal = random * mass
  let passed: f64 = 0
  for (let at = vocabulary; at > end; ) {
    passed += weightOf(order, weights, --at)
    if (passed > goal || at == end) return load<i32>(order + (at << 2))
  }
  return largest(weights)
}

// @ts-ignore: decorator
@inline
function weightOf(order: usize, weights: usize, at: usize): f64 {
  return <f64>load<f32>(weights + (<usize>load<i32>(order + (at << 2)) << 2))
}

function heapify(order: usize, weights: usize): void {
  for (let id: usize = 0; id < vocabulary; id++) store<i32>(order + (id << 2), <i32>id)
  for (let at = vocabulary >> 1; at > 0; at--) sink(order, at - 1, vocabulary, weights)
}

/** Moves the heaviest id to place `last` and mends the heap before it. */
function pop(order: usize, last: usize, weights: usize): void {
  const top = load<i32>(order)
  store<i32>(order, load<i32>(order + (last << 2)))
  store<i32>(order + (last << 2), top)
  sink(order, 0, last, weights)
}

/** Equal weights are ordered by id, so that the order is total. */
// @ts-ignore: decorator
@inline
function isBefore(a: i32, b: i32, weights: usize): bool {
  const first = load<f32>(weights + (<usize>a << 2))
  const second = load<f32>(weights + (<usize>b << 2))
  return first > second || (first == second && a < b)
}

function sink(order: usize, at: usize, size: usize, weights: usize): void {
  const id = load<i32>(order + (at << 2))
  while ((at << 1) + 1 < size) {
    let child = (at << 1) + 1
    let best = load<i32>(order + (child << 2))
    if (child + 1 < size) {
      const other = load<i32>(order + (child + 1 << 2))
      if (isBefore(other, best, weights)) {
        best = other
        child++
      }
    }
    if (isBefore(id, best, weights)) break
    store<i32>(order + (at << 2), best)
    at = child
  }
  store<i32>(order + (at << 2), id)
}

/**
 * The gradient of a row's logits, over the tempered logits themselves:
 * (g (δ − p) − h p (log p + H)) / T for g, h the gradients of log-probability and entropy.
 */
export function distributeBackward(logits: usize, row: usize): void {
  const inverseTemperature = load<f32>(row, ROW_INVERSE_TEMPERATURE)
  const g = load<f32>(row, ROW_LOGPROB_GRADIENT) * inverseTemperature
  const h = load<f32>(row, ROW_ENTROPY_GRADIENT) * inverseTemperature
  const maximum = f32x4.splat(load<f32>(row, ROW_MAXIMUM))
  const logSum = f32x4.splat(<f32>load<f64>(row, ROW_LOG_SUM))
  const straight = f32x4.splat(-g)
  const bent = f32x4.splat(-h)
  const entropy = f32x4.splat(load<f32>(row, ROW_ENTROPY))
  for (let at: usize = 0; at < paddedVocabulary << 2; at += 16) {
    const logprob = f32x4.sub(f32x4.sub(v128.load(logits + at), maximum), logSum)
    const slope = madd(bent, f32x4.add(logprob, entropy), straight)
    v128.store(logits + at, f32x4.mul(exp4(logprob), slope))
  }
  const target = logits + (<usize>load<i32>(row, ROW_TARGET) << 2)
  store<f32>(target, load<f32>(target) + g)
}
