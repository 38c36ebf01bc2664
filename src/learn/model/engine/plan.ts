import { rankLimit } from '../adapter.ts'
import * as layout from '../kernels/layout.ts'
import { headsOf, type ModelShape, up8 } from '../shape.ts'
import type { WeightType } from '../weights-file.ts'
import type { Heap } from './heap.ts'
import { type TensorPlace, tensorPlaces } from './parameters.ts'
import { cosineAndSine, exponential } from './portable.ts'
import type { Kernels } from './webassembly.ts'

/** The natural logarithm of 10,000, the base of the rotary angles as Llama has it. */
const logRopeTheta = 9.210340371976184

/** Tokens of a job at most. */
export const jobTokens = 256

/** What is trained, and where: all weights, or the factors of an adapter. Addresses are in bytes. */
export interface TrainedArrays {
  /** Numbers in each array, padding included. */
  readonly count: number
  readonly places: readonly TensorPlace[]
  readonly values: number
  readonly gradient: number
  readonly lanes: number
  readonly moment1: number
  readonly moment2: number
  readonly normSums: number
}

/** Where the model's arrays lie, in bytes. */
export interface Plan {
  readonly shape: ModelShape
  readonly paddedVocabulary: number
  /** Whether the weights stay: only adapters of them are trained. */
  readonly isFrozen: boolean
  /** Where weights that stay lie. */
  readonly frozen: FrozenArrays
  /** Bytes of the weights that a step reads. */
  readonly weightBytes: number
  /** The key-value cache: `blocks` blocks of `blockBytes`. */
  readonly cache: number
  readonly blocks: number
  readonly blockBytes: number
}

/** Where weights that stay lie, in bytes. */
export interface FrozenArrays {
  readonly type: WeightType
  readonly panels: number
  readonly fixed: number
  /** Rows of the embedding; 0 if the head's panels are the embedding. */
  readonly embedding: number
}

/** Sizes of a token's queries, of its keys, and of its queries, keys and values together. */
export function widthsOf(shape: ModelShape) {
  const { keyHeads, headSize } = headsOf(shape)
  const queries = shape.heads * headSize
  const keys = keyHeads * headSize
  return { queries, keys, side: queries + 2 * keys }
}

/** Where each weight begins in an array of all parameters, in numbers. */
export function parameterOffsets({ vocabulary, width, layers, hidden }: ModelShape) {
  const qkv = width
  const out = qkv + 3 * width * width
  const norm2 = out + width * width
  const gateUp = norm2 + width
  const down = gateUp + 2 * width * hidden
  const layerStride = down + hidden * width
  const first = up8(vocabulary) * width
  const finalNorm = first + layers * layerStride
  const total = finalNorm + width
  const offsets = { layers: first, layerStride, norm1: 0, qkv, out, norm2, gateUp, down, finalNorm }
  return { ...offsets, total }
}

/** Where norms and biases of a model whose weights stay begin, in numbers; 0 if it has none. */
export function fixedOffsets(shape: ModelShape) {
  const { width, hidden, layers, family } = shape
  const { headSize } = headsOf(shape)
  const { side } = widthsOf(shape)
  let end = 0
  const take = (size: number, isThere = true): number => {
    const start = end
    if (isThere) end += size
    return isThere ? start : 0
  }
  const norm1 = take(width)
  const norm2 = take(width)
  const queryNorm = take(headSize, family?.headNorms)
  const keyNorm = take(headSize, family?.headNorms)
  const { queries, keysAndValues, output, unit } = family!.biases
  const qkvBias = take(side, queries || keysAndValues)
  const outBias = take(width, output)
  const gateUpBias = take(2 * hidden, unit)
  const downBias = take(width, unit)
  const layerStride = end
  const finalNorm = layers * layerStride
  const offsets = { norm1, norm2, queryNorm, keyNorm, qkvBias, outBias, gateUpBias, downBias }
  return { ...offsets, layerStride, finalNorm, total: finalNorm + width }
}

/** Where the panels of a model begin, in numbers: of a layer, and of the head. */
export function panelOffsets(shape: ModelShape) {
  const { width, hidden, layers } = shape
  const { queries, side } = widthsOf(shape)
  const out = width * side
  const gateUp = out + queries * width
  const down = gateUp + 2 * width * hidden
  const layerStride = down + hidden * width
  const head = layers * layerStride
  return {
    qkv: 0,
    out,
    gateUp,
    down,
    layerStride,
    head,
    total: head + up8(shape.vocabulary) * width,
  }
}

/** Takes the memory of a model and writes the plan that the kernels read. */
export function makePlan(heap: Heap, kernels: Kernels, options: PlanOptions): Plan {
  const { shape, threads, cacheBytes, type } = options
  const { family } = shape
  writeShape(heap, shape)
  const blockBytes = shape.layers * 2 * layout.BLOCK * widthsOf(shape).keys * 4
  const perContext = Math.ceil(shape.context / layout.BLOCK) + 1
  const least = family ? perContext + 1 : 2 * perContext
  const blocks = Math.max(least, Math.floor(cacheBytes / blockBytes))
  writeAngles(heap, shape)
  const frozen = family
    ? takeFrozen(heap, shape, type)
    : { type, panels: takePanels(heap, shape), fixed: 0, embedding: 0 }
  const cache = heap.take(blocks * blockBytes)
  takeScratch(heap, kernels, threads)
  const paddedVocabulary = up8(shape.vocabulary)
  const width = type === 'bf16' ? 2 : 4
  const weightBytes = panelOffsets(shape).total * width
  const isFrozen = family !== undefined
  return { shape, paddedVocabulary, isFrozen, frozen, weightBytes, cache, blocks, blockBytes }
}

/** What a plan is made for. */
interface PlanOptions {
  readonly shape: ModelShape
  readonly threads: number
  /** How weights that stay lie in memory. */
  readonly type: WeightType
  /** Bytes of the key-value cache, raised if needed to hold a whole context. */
  readonly cacheBytes: number
}

/** Takes the arrays of what is trained: all weights of a model, or the factors of its adapter. */
export function takeTrained(
  heap: Heap,
  { count, places }: Pick<TrainedArrays, 'count' | 'places'>,
): TrainedArrays {
  const bytes = count * 4
  const arrays = {
    values: heap.take(bytes),
    lanes: heap.take(layout.LANES * bytes),
    gradient: heap.take(bytes),
    moment1: heap.take(bytes),
    moment2: heap.take(bytes),
    normSums: heap.take(Math.ceil(count / layout.NORM_BLOCK) * 8),
  }
  setWord(heap, layout.PARAMETERS, arrays.values)
  setWord(heap, layout.PARAMETER_BYTES, bytes)
  setWord(heap, layout.LANE_GRADIENTS, arrays.lanes)
  setWord(heap, layout.GRADIENT, arrays.gradient)
  setWord(heap, layout.MOMENT_1, arrays.moment1)
  setWord(heap, layout.MOMENT_2, arrays.moment2)
  setWord(heap, layout.NORM_SUMS, arrays.normSums)
  return { count, places, ...arrays }
}

/** Takes the arrays of a model that is trained whole. */
export function takeWhole(heap: Heap, shape: ModelShape): TrainedArrays {
  const offsets = parameterOffsets(shape)
  const arrays = takeTrained(heap, { count: offsets.total, places: tensorPlaces(shape) })
  setWord(heap, layout.FIXED, arrays.values)
  setWord(heap, layout.EMBEDDING, arrays.values)
  setWord(heap, layout.LAYER_FIXED, offsets.layers * 4)
  setWord(heap, layout.LAYER_FIXED_STRIDE, offsets.layerStride * 4)
  setWord(heap, layout.NORM_1, offsets.norm1 * 4)
  setWord(heap, layout.QKV, offsets.qkv * 4)
  setWord(heap, layout.OUT, offsets.out * 4)
  setWord(heap, layout.NORM_2, offsets.norm2 * 4)
  setWord(heap, layout.GATE_UP, offsets.gateUp * 4)
  setWord(heap, layout.DOWN, offsets.down * 4)
  setWord(heap, layout.FINAL_NORM, offsets.finalNorm * 4)
  return arrays
}

export function setWord(heap: Heap, offset: number, value: number): void {
  heap.i32[(layout.PLAN + offset) / 4] = value
}

export function setFloat(heap: Heap, offset: number, value: number): void {
  heap.f32[(layout.PLAN + offset) / 4] = value
}

function writeShape(heap: Heap, shape: ModelShape): void {
  const { family } = shape
  const { keyHeads, headSize } = headsOf(shape)
  setWord(heap, layout.WIDTH, shape.width)
  setWord(heap, layout.LAYERS, shape.layers)
  setWord(heap, layout.HEADS, shape.heads)
  setWord(heap, layout.KEY_HEADS, keyHeads)
  setWord(heap, layout.HEAD_SIZE, headSize)
  setWord(heap, layout.HIDDEN, shape.hidden)
  setWord(heap, layout.VOCABULARY, shape.vocabulary)
  setWord(heap, layout.PADDED_VOCABULARY, up8(shape.vocabulary))
  setWord(heap, layout.CONTEXT, shape.context)
  setWord(heap, layout.FROZEN, family ? 1 : 0)
  setWord(heap, layout.ACTIVATION, family?.activation === 'gelu-tanh' ? 1 : 0)
  setFloat(heap, layout.EPSILON, family?.epsilon ?? 1e-6)
  setFloat(heap, layout.EMBEDDING_SCALE, family?.embeddingScale ?? 1)
  if (!family?.windows.some(window => window > 0)) return
  const windows = heap.take(shape.layers * 4)
  family.windows.forEach((window, layer) => {
    heap.i32[windows / 4 + layer] = window
  })
  setWord(heap, layout.WINDOWS, windows)
}

/** Panels of weights that are trained lie there twice, straight and turned. */
function takePanels(heap: Heap, shape: ModelShape): number {
  const embedding = up8(shape.vocabulary) * shape.width
  const { layerStride, qkv, out, gateUp, down } = panelOffsets(shape)
  const panels = heap.take((2 * embedding + 2 * shape.layers * layerStride) * 4)
  setWord(heap, layout.PANELS, panels)
  setWord(heap, layout.HEAD_PANELS, 0)
  setWord(heap, layout.EMBEDDING_PANELS, embedding * 4)
  setWord(heap, layout.LAYER_PANELS, 2 * embedding * 4)
  setWord(heap, layout.LAYER_PANEL_STRIDE, 2 * layerStride * 4)
  writePanelOffsets(heap, { qkv, out, gateUp, down }, 4)
  setWord(heap, layout.QKV_TURNED, (layerStride + qkv) * 4)
  setWord(heap, layout.OUT_TURNED, (layerStride + out) * 4)
  setWord(heap, layout.GATE_UP_TURNED, (layerStride + gateUp) * 4)
  setWord(heap, layout.DOWN_TURNED, (layerStride + down) * 4)
  return panels
}

function writePanelOffsets(
  heap: Heap,
  offsets: Readonly<Record<'qkv' | 'out' | 'gateUp' | 'down', number>>,
  bytes: number,
): void {
  setWord(heap, layout.QKV_PANELS, offsets.qkv * bytes)
  setWord(heap, layout.OUT_PANELS, offsets.out * bytes)
  setWord(heap, layout.GATE_UP_PANELS, offsets.gateUp * bytes)
  setWord(heap, layout.DOWN_PANELS, offsets.down * bytes)
}

function takeFrozen(heap: Heap, shape: ModelShape, type: WeightType): FrozenArrays {
  const bytes = type === 'bf16' ? 2 : 4
  const offsets = panelOffsets(shape)
  const own = fixedOffsets(shape)
  const panels = heap.take(offsets.total * bytes)
  const fixed = heap.take(own.total * 4)
  const rows = shape.family!.isTied ? 0 : shape.vocabulary * shape.width
  const embedding = rows === 0 ? 0 : heap.take(rows * bytes)
  setWord(heap, layout.HALVES, type === 'bf16' ? 1 : 0)
  setWord(heap, layout.PANELS, panels)
  setWord(heap, layout.LAYER_PANEL_STRIDE, offsets.layerStride * bytes)
  setWord(heap, layout.HEAD_PANELS, offsets.head * bytes)
  writePanelOffsets(heap, offsets, bytes)
  setWord(heap, layout.EMBEDDING, embedding)
  setWord(heap, layout.FIXED, fixed)
  setWord(heap, layout.LAYER_FIXED_STRIDE, own.layerStride * 4)
  setWord(heap, layout.NORM_1, own.norm1 * 4)
  setWord(heap, layout.NORM_2, own.norm2 * 4)
  setWord(heap, layout.FINAL_NORM, own.finalNorm * 4)
  setWord(heap, layout.QUERY_NORM, own.queryNorm * 4)
  setWord(heap, layout.KEY_NORM, own.keyNorm * 4)
  setWord(heap, layout.QKV_BIAS, own.qkvBias * 4)
  setWord(heap, layout.OUT_BIAS, own.outBias * 4)
  setWord(heap, layout.GATE_UP_BIAS, own.gateUpBias * 4)
  setWord(heap, layout.DOWN_BIAS, own.downBias * 4)
  return { type, panels, fixed, embedding }
}

/** Cosines and sines of position · theta^(−2i / head size), for pairs i, or of what the family states. */
function writeAngles(heap: Heap, shape: ModelShape): void {
  const { context } = shape
  const half = headsOf(shape).headSize / 2
  const cosines = heap.take(context * half * 4)
  const sines = heap.take(context * half * 4)
  setWord(heap, layout.COSINES, cosines)
  setWord(heap, layout.SINES, sines)
  eachAngle(shape, (at, cosine, sine) => {
    heap.f32[cosines / 4 + at] = cosine
    heap.f32[sines / 4 + at] = sine
  })
}

/** Visits every position's pairs, one after the other. */
export function eachAngle(
  shape: ModelShape,
  visit: (at: number, cosine: number, sine: number) => void,
): void {
  const { context, family } = shape
  const half = headsOf(shape).headSize / 2
  const factor = family?.rope.factor ?? 1
  // Pretrained models have seen angles in single precision.
  const rounded = family ? Math.fround : (angle: number) => angle
  for (let pair = 0; pair < half; pair++) {
    const frequency = family?.rope.frequencies[pair] ?? exponential((-pair / half) * logRopeTheta)
    for (let position = 0; position < context; position++) {
      const [cosine, sine] = cosineAndSine(rounded(position * frequency))
      visit(position * half + pair, cosine * factor, sine * factor)
    }
  }
}

/** Each thread's scratch holds a whole job's activations, for jobs that keep nothing. */
function takeScratch(heap: Heap, kernels: Kernels, threads: number): void {
  // The kernels measure with the shape they read from the plan, and with the largest adapter.
  setWord(heap, layout.RANK, heap.i32[(layout.PLAN + layout.FROZEN) / 4] === 1 ? rankLimit : 0)
  kernels.configure(0)
  const kept = kernels.keptBytes(jobTokens, jobTokens, layout.KEEP_NOTHING)
  const bytes = kept + kernels.scratchBytes(jobTokens, 1)
  setWord(heap, layout.RANK, 0)
  setWord(heap, layout.SCRATCH, heap.take(bytes * threads))
  setWord(heap, layout.SCRATCH_BYTES, bytes)
  kernels.configure(0)
}
