import * as layout from '../kernels/layout.ts'
import { type ModelShape, up8 } from '../shape.ts'
import type { Heap } from './heap.ts'
import { cosineAndSine, exponential } from './portable.ts'
import type { Kernels } from './webassembly.ts'

/** The natural logarithm of 10,000, the base of the rotary angles as Llama has it. */
const logRopeTheta = 9.210340371976184

/** Tokens of a job at most, unless one row alone is longer. */
export const jobTokens = 256

/** Where the model's arrays lie, in bytes. */
export interface Plan {
  readonly shape: ModelShape
  readonly paddedVocabulary: number
  /** Numbers in a parameter array, padding included. */
  readonly parameterCount: number
  readonly parameters: number
  readonly gradient: number
  readonly lanes: number
  readonly moment1: number
  readonly moment2: number
  readonly normSums: number
  /** The key-value cache: `blocks` blocks of `blockBytes`. */
  readonly cache: number
  readonly blocks: number
  readonly blockBytes: number
}

/** Offsets of the parameters in numbers: the embedding, the layers, the last norm. */
export interface ParameterOffsets {
  readonly layers: number
  readonly layerStride: number
  readonly norm1: number
  readonly qkv: number
  readonly out: number
  readonly norm2: number
  readonly gateUp: number
  readonly down: number
  readonly finalNorm: number
  readonly total: number
}

/** Where each weight begins in a parameter array. */
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
  return { ...offsets, total } satisfies ParameterOffsets
}

/** Takes the model's memory and writes the plan that the kernels read. */
export function makePlan(heap: Heap, kernels: Kernels, options: PlanOptions): Plan {
  const { shape, threads, cacheBytes } = options
  writeShape(heap, shape)
  writeParameterOffsets(heap, shape)
  const panels = writePanelOffsets(heap, shape)
  const bytes = parameterOffsets(shape).total * 4
  const blockBytes = shape.layers * 2 * layout.BLOCK * shape.width * 4
  const perContext = Math.ceil(shape.context / layout.BLOCK) + 1
  const blocks = Math.max(2 * perContext, Math.floor(cacheBytes / blockBytes))
  const addresses = {
    parameters: heap.take(bytes),
    lanes: heap.take(layout.LANES * bytes),
    gradient: heap.take(bytes),
    moment1: heap.take(bytes),
    moment2: heap.take(bytes),
    normSums: heap.take(Math.ceil(bytes / 4 / layout.NORM_BLOCK) * 8),
    cache: heap.take(blocks * blockBytes),
  }
  setWord(heap, layout.PARAMETERS, addresses.parameters)
  setWord(heap, layout.PARAMETER_BYTES, bytes)
  setWord(heap, layout.PANELS, heap.take(panels))
  setWord(heap, layout.LANE_GRADIENTS, addresses.lanes)
  setWord(heap, layout.GRADIENT, addresses.gradient)
  setWord(heap, layout.MOMENT_1, addresses.moment1)
  setWord(heap, layout.MOMENT_2, addresses.moment2)
  setWord(heap, layout.NORM_SUMS, addresses.normSums)
  writeAngles(heap, shape)
  takeScratch(heap, kernels, { threads, chunkTokens: Math.max(jobTokens, shape.context) })
  const paddedVocabulary = up8(shape.vocabulary)
  const parameterCount = bytes / 4
  return { shape, paddedVocabulary, parameterCount, blocks, blockBytes, ...addresses }
}

/** What a plan is made for. */
interface PlanOptions {
  readonly shape: ModelShape
  readonly threads: number
  /** Bytes of the key-value cache, raised if needed to hold two whole contexts. */
  readonly cacheBytes: number
}

function setWord(heap: Heap, offset: number, value: number): void {
  heap.i32[(layout.PLAN + offset) / 4] = value
}

function writeShape(heap: Heap, shape: ModelShape): void {
  setWord(heap, layout.WIDTH, shape.width)
  setWord(heap, layout.LAYERS, shape.layers)
  setWord(heap, layout.HEADS, shape.heads)
  setWord(heap, layout.HIDDEN, shape.hidden)
  setWord(heap, layout.VOCABULARY, shape.vocabulary)
  setWord(heap, layout.PADDED_VOCABULARY, up8(shape.vocabulary))
  setWord(heap, layout.CONTEXT, shape.context)
}

function writeParameterOffsets(heap: Heap, shape: ModelShape): void {
  const offsets = parameterOffsets(shape)
  setWord(heap, layout.LAYER_PARAMETERS, offsets.layers * 4)
  setWord(heap, layout.LAYER_PARAMETER_STRIDE, offsets.layerStride * 4)
  setWord(heap, layout.NORM_1, offsets.norm1 * 4)
  setWord(heap, layout.QKV, offsets.qkv * 4)
  setWord(heap, layout.OUT, offsets.out * 4)
  setWord(heap, layout.NORM_2, offsets.norm2 * 4)
  setWord(heap, layout.GATE_UP, offsets.gateUp * 4)
  setWord(heap, layout.DOWN, offsets.down * 4)
  setWord(heap, layout.FINAL_NORM, offsets.finalNorm * 4)
}

/** Every weight is stored as panels twice, straight and transposed; returns the bytes of all panels. */
function writePanelOffsets(heap: Heap, shape: ModelShape): number {
  const { width, hidden, layers } = shape
  const embedding = up8(shape.vocabulary) * width * 4
  setWord(heap, layout.HEAD_PANELS, 0)
  setWord(heap, layout.EMBEDDING_PANELS, embedding)
  setWord(heap, layout.LAYER_PANELS, 2 * embedding)
  const sizes = [3 * width * width, width * width, 2 * width * hidden, hidden * width]
  let offset = 0
  const straight = [
    layout.QKV_PANELS,
    layout.OUT_PANELS,
    layout.GATE_UP_PANELS,
    layout.DOWN_PANELS,
  ] as const
  const turned = [
    layout.QKV_TURNED,
    layout.OUT_TURNED,
    layout.GATE_UP_TURNED,
    layout.DOWN_TURNED,
  ] as const
  for (const words of [straight, turned]) {
    words.forEach((word, index) => {
      setWord(heap, word, offset)
      offset += sizes[index]! * 4
    })
  }
  setWord(heap, layout.LAYER_PANEL_STRIDE, offset)
  return 2 * embedding + layers * offset
}

/** Cosines and sines of position · theta^(−2i / head size), for pairs i. */
function writeAngles(heap: Heap, { width, heads, context }: ModelShape): void {
  const half = width / heads / 2
  const cosines = heap.take(context * half * 4)
  const sines = heap.take(context * half * 4)
  setWord(heap, layout.COSINES, cosines)
  setWord(heap, layout.SINES, sines)
  for (let pair = 0; pair < half; pair++) {
    const frequency = exponential((-pair / half) * logRopeTheta)
    for (let position = 0; position < context; position++) {
      const [cosine, sine] = cosineAndSine(position * frequency)
      heap.f32[cosines / 4 + position * half + pair] = cosine
      heap.f32[sines / 4 + position * half + pair] = sine
    }
  }
}

/** Each thread's scratch holds a whole chunk's activations, for chunks that are not kept. */
function takeScratch(
  heap: Heap,
  kernels: Kernels,
  { threads, chunkTokens }: { threads: number; chunkTokens: number },
): void {
  // The kernels measure with the shape they read from the plan.
  kernels.configure(0)
  const kept = kernels.keptBytes(chunkTokens, chunkTokens, 1)
  const bytes = kept + kernels.scratchBytes(chunkTokens, 1)
  setWord(heap, layout.SCRATCH, heap.take(bytes * threads))
  setWord(heap, layout.SCRATCH_BYTES, bytes)
  kernels.configure(0)
}
