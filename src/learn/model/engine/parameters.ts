import { random, seedOf } from '../../../base/math/random.ts'
import type { AdapterMap, AdapterShape } from '../adapter.ts'
import { type ModelShape, up8 } from '../shape.ts'
import type { Tensor } from '../tensor.ts'
import { parameterOffsets, type TrainedArrays, widthsOf } from './plan.ts'

/**
 * One tensor of the checkpoint inside a parameter array. A matrix product's weight is kept as
 * inputs × outputs, several side by side in rows of `stride`; checkpoints have outputs × inputs.
 */
export interface TensorPlace {
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

/** Where the factors of an adapter lie among its numbers, and how many numbers these are. */
export function adapterPlaces(
  shape: ModelShape,
  adapter: AdapterShape,
): Pick<TrainedArrays, 'count' | 'places'> & { readonly layerStride: number } {
  const { inner, stride } = adapterOffsets(shape, adapter)
  const { rank } = adapter
  const places = Array.from({ length: shape.layers }, (_, layer) =>
    inner.flatMap(({ map, inputs, outputs, down, up }): TensorPlace[] => {
      const name = `base_model.model.model.layers.${layer}.${modules[map]}.${map}`
      const at = layer * stride
      const common = { kind: 'weight' } as const
      const spread = 1 / Math.sqrt(inputs)
      return [
        {
          ...common,
          name: `${name}.lora_A.weight`,
          offset: at + down,
          shape: [rank, inputs],
          stride: up8(rank),
          spread,
        },
        {
          ...common,
          name: `${name}.lora_B.weight`,
          offset: at + up,
          shape: [outputs, rank],
          stride: outputs,
          spread: 0,
        },
      ]
    }),
  ).flat()
  return { count: shape.layers * stride, places, layerStride: stride }
}

const modules: Readonly<Record<AdapterMap, 'self_attn' | 'mlp'>> = {
  q_proj: 'self_attn',
  k_proj: 'self_attn',
  v_proj: 'self_attn',
  o_proj: 'self_attn',
  gate_proj: 'mlp',
  up_proj: 'mlp',
  down_proj: 'mlp',
}

/** Inputs and outputs of the maps of a layer. */
export function mapSizes(
  shape: ModelShape,
): Readonly<Record<AdapterMap, readonly [number, number]>> {
  const { width, hidden } = shape
  const { queries, keys } = widthsOf(shape)
  return {
    q_proj: [width, queries],
    k_proj: [width, keys],
    v_proj: [width, keys],
    o_proj: [queries, width],
    gate_proj: [width, hidden],
    up_proj: [width, hidden],
    down_proj: [hidden, width],
  }
}

/** Where the factors of a layer begin, in numbers: never at 0, which says that a map has none. */
export function adapterOffsets(shape: ModelShape, { rank, targets }: AdapterShape) {
  let end = 16
  const sizes = mapSizes(shape)
  const inner = targets.map(map => {
    const [inputs, outputs] = sizes[map]
    const down = end
    const up = down + inputs * up8(rank)
    end = up + up8(rank) * outputs
    return { map, inputs, outputs, down, up }
  })
  return { inner, stride: end }
}

/** Fills an array with fresh weights: norms of 1, the rest uniform around 0. */
export function initialise(
  array: Float32Array,
  places: readonly TensorPlace[],
  seed: number,
): void {
  array.fill(0)
  for (const place of places) {
    const draw = random(seedOf('weights', seed, place.name))
    // A uniform distribution of this half-width has the wanted deviation.
    const reach = place.spread * Math.sqrt(3)
    eachNumber(place, index => {
      array[index] = place.kind === 'norm' ? 1 : (2 * draw() - 1) * reach
    })
  }
}

/** Copies an array out as the tensors of a checkpoint. */
export function toTensors(array: Float32Array, places: readonly TensorPlace[]): Tensor[] {
  return places.map(place => {
    const data = new Float32Array(place.shape.reduce((size, side) => size * side, 1))
    eachNumber(place, (index, at) => {
      data[at] = array[index]!
    })
    return { name: place.name, shape: place.shape, data }
  })
}

/** Copies the tensors of a checkpoint into an array; missing or misshapen ones are refused. */
export function fromTensors(
  array: Float32Array,
  places: readonly TensorPlace[],
  tensors: readonly Tensor[],
): void {
  const named = new Map(tensors.map(tensor => [tensor.name, tensor]))
  const known = new Set(places.map(place => place.name))
  const strange = tensors.find(tensor => !known.has(tensor.name))
  if (strange) throw new Error(`The model has no place for the tensor ${strange.name}.`)
  for (const { name, shape } of places) {
    const tensor = named.get(name)
    if (!tensor) throw new Error(`The tensor ${name} is missing.`)
    if (tensor.shape.join() !== shape.join()) {
      const shapes = `[${tensor.shape.join(', ')}], the model wants [${shape.join(', ')}]`
      throw new Error(`The tensor ${name} has the shape ${shapes}.`)
    }
  }
  array.fill(0)
  for (const place of places) {
    const { data } = named.get(place.name)!
    eachNumber(place, (index, at) => {
      array[index] = data[at]!
    })
  }
}

/** Ranges of numbers, start and end, that weight decay applies to: all but the norms. */
export function decayedRanges({ places, count }: TrainedArrays): { start: number; end: number }[] {
  const norms = places.filter(place => place.kind === 'norm')
  const starts = [0, ...norms.map(norm => norm.offset + norm.stride)]
  const ends = [...norms.map(norm => norm.offset), count]
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
