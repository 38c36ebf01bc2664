import { random, seedOf } from '../../../base/math/random.ts'
import type { ModelShape } from '../shape.ts'
import type { Tensor } from '../tensor.ts'
import { parameterOffsets } from './plan.ts'

/**
 * One tensor of the checkpoint inside a parameter array. A matrix product's weight is kept as
 * inputs × outputs, several side by side in rows of `stride`; checkpoints have outputs × inputs.
 */
interface TensorPlace {
  readonly name: string
  readonly kind: 'norm' | 'embedding' | 'weight'
  readonly offset: number
  readonly shape: readonly number[]
  readonly stride: number
  /** The standard deviation of fresh weights. */
  readonly spread: number
}

/** Where each tensor of a checkpoint, by its Hugging Face name, lies among the parameters. */
export function tensorPlaces(shape: ModelShape): TensorPlace[] {
  const { vocabulary, width, layers } = shape
  const offsets = parameterOffsets(shape)
  const norm = (name: string, offset: number): TensorPlace => {
    return { name, kind: 'norm', offset, shape: [width], stride: width, spread: 0 }
  }
  const embedding: TensorPlace = {
    name: 'model.embed_tokens.weight',
    kind: 'embedding',
    offset: 0,
    shape: [vocabulary, width],
    stride: width,
    spread: 0.4 / Math.sqrt(width),
  }
  const rest = Array.from({ length: layers }, (_, layer) => layerPlaces(shape, layer, norm))
  return [embedding, ...rest.flat(), norm('model.norm.weight', offsets.finalNorm)]
}

function layerPlaces(
  shape: ModelShape,
  layer: number,
  norm: (name: string, offset: number) => TensorPlace,
): TensorPlace[] {
  const { width, hidden, layers } = shape
  const offsets = parameterOffsets(shape)
  const at = offsets.layers + layer * offsets.layerStride
  const prefix = `model.layers.${layer}`
  const inward = Math.sqrt(0.4 / width)
  // Weights that write to the residual stream start smaller the more layers there are.
  const outward = inward / Math.sqrt(2 * layers)
  const weight = (name: string, offset: number, sizes: Sizes): TensorPlace => {
    const { inputs, outputs, stride, spread } = sizes
    const place = { name: `${prefix}.${name}.weight`, offset: at + offset, stride, spread }
    return { ...place, kind: 'weight', shape: [outputs, inputs] }
  }
  const side = { inputs: width, outputs: width, stride: 3 * width, spread: inward }
  const gate = { inputs: width, outputs: hidden, stride: 2 * hidden, spread: inward }
  return [
    norm(`${prefix}.input_layernorm.weight`, at + offsets.norm1),
    weight('self_attn.q_proj', offsets.qkv, side),
    weight('self_attn.k_proj', offsets.qkv + width, side),
    weight('self_attn.v_proj', offsets.qkv + 2 * width, side),
    weight('self_attn.o_proj', offsets.out, { ...side, stride: width, spread: outward }),
    norm(`${prefix}.post_attention_layernorm.weight`, at + offsets.norm2),
    weight('mlp.gate_proj', offsets.gateUp, gate),
    weight('mlp.up_proj', offsets.gateUp + hidden, gate),
    weight('mlp.down_proj', offsets.down, {
      inputs: hidden,
      outputs: width,
      stride: width,
      spread: outward,
    }),
  ]
}

interface Sizes {
  readonly inputs: number
  readonly outputs: number
  readonly stride: number
  readonly spread: number
}

/** Fills a parameter array with fresh weights: norms of 1, the rest uniform around 0. */
export function initialise(array: Float32Array, shape: ModelShape, seed: number): void {
  array.fill(0)
  for (const place of tensorPlaces(shape)) {
    const draw = random(seedOf('weights', seed, place.name))
    // A uniform distribution of this half-width has the wanted deviation.
    const reach = place.spread * Math.sqrt(3)
    eachNumber(place, index => {
      array[index] = place.kind === 'norm' ? 1 : (2 * draw() - 1) * reach
    })
  }
}

/** Copies a parameter array out as the tensors of a checkpoint. */
export function toTensors(array: Float32Array, shape: ModelShape): Tensor[] {
  return tensorPlaces(shape).map(place => {
    const data = new Float32Array(place.shape.reduce((size, side) => size * side, 1))
    eachNumber(place, (index, at) => {
      data[at] = array[index]!
    })
    return { name: place.name, shape: place.shape, data }
  })
}

/** Copies the tensors of a checkpoint into a parameter array; missing or misshapen ones are refused. */
export function fromTensors(
  array: Float32Array,
  shape: ModelShape,
  tensors: readonly Tensor[],
): void {
  const named = new Map(tensors.map(tensor => [tensor.name, tensor]))
  const places = tensorPlaces(shape)
  const known = new Set(places.map(place => place.name))
  const strange = tensors.find(tensor => !known.has(tensor.name))
  if (strange) throw new Error(`The model has no place for the tensor ${strange.name}.`)
  array.fill(0)
  for (const place of places) {
    const tensor = named.get(place.name)
    if (!tensor) throw new Error(`The tensor ${place.name} is missing.`)
    if (tensor.shape.join() !== place.shape.join()) {
      const shapes = `[${tensor.shape.join(', ')}], the model wants [${place.shape.join(', ')}]`
      throw new Error(`The tensor ${place.name} has the shape ${shapes}.`)
    }
    eachNumber(place, (index, at) => {
      array[index] = tensor.data[at]!
    })
  }
}

/** Ranges of numbers, start and end, that weight decay applies to: all but the norms. */
export function decayedRanges(shape: ModelShape): { start: number; end: number }[] {
  const norms = tensorPlaces(shape).filter(place => place.kind === 'norm')
  const starts = [0, ...norms.map(norm => norm.offset + norm.stride)]
  const ends = [...norms.map(norm => norm.offset), parameterOffsets(shape).total]
  return starts
    .map((start, index) => ({ start, end: ends[index]! }))
    .filter(({ start, end }) => end > start)
}

/** Visits a tensor's numbers in the checkpoint's order: index among the parameters, place in it. */
function eachNumber(place: TensorPlace, visit: (index: number, at: number) => void): void {
  const [rows, columns = 1] = place.shape as [number, number?]
  let at = 0
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const index = place.kind === 'weight' ? column * place.stride + row : row * columns + column
      visit(place.offset + index, at++)
    }
  }
}
