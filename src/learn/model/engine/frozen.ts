import type { Family, ModelShape } from '../shape.ts'
import { up8 } from '../shape.ts'
import type { WeightsFile, WeightType } from '../weights-file.ts'
import type { Heap } from './heap.ts'
import { mapSizes } from './parameters.ts'
import { fixedOffsets, type Plan, panelOffsets } from './plan.ts'
import type { Kernels } from './webassembly.ts'

/** A weight inside a product: its outputs are columns of it, from `first` on. */
interface MapPlace {
  readonly name: string
  readonly inputs: number
  readonly outputs: number
  /** Of the product's panels, in numbers. */
  readonly panels: number
  readonly columns: number
  readonly first: number
}

/** A norm or a bias. */
interface VectorPlace {
  readonly name: string
  readonly size: number
  readonly offset: number
  /** What is added to every number. */
  readonly added: number
}

/** Where the tensors of a pretrained model go. */
export interface FrozenPlaces {
  readonly maps: readonly MapPlace[]
  readonly vectors: readonly VectorPlace[]
  /** Rows of the embedding that are no head. */
  readonly embedding: string | undefined
}

const embeddingName = 'model.embed_tokens.weight'

/** Tensors that say nothing which the config does not. */
const idle = /(^|\.)rotary_emb\.inv_freq$/

/** The places of a model's tensors, by Hugging Face's names. */
export function frozenPlaces(shape: ModelShape): FrozenPlaces {
  const family = shape.family!
  const { width, vocabulary, layers } = shape
  const { head } = panelOffsets(shape)
  const { finalNorm } = fixedOffsets(shape)
  const added = family.normsAddOne ? 1 : 0
  const parts = Array.from({ length: layers }, (_, layer) => layerPlaces(shape, layer))
  const top: MapPlace = {
    name: family.isTied ? embeddingName : 'lm_head.weight',
    inputs: width,
    outputs: vocabulary,
    panels: head,
    columns: up8(vocabulary),
    first: 0,
  }
  const norm = { name: 'model.norm.weight', size: width, offset: finalNorm, added }
  return {
    maps: [...parts.flatMap(({ maps }) => maps), top],
    vectors: [...parts.flatMap(({ vectors }) => vectors), norm],
    embedding: family.isTied ? undefined : embeddingName,
  }
}

function layerPlaces(shape: ModelShape, layer: number): Omit<FrozenPlaces, 'embedding'> {
  const family = shape.family!
  const { width } = shape
  const sizes = mapSizes(shape)
  const offsets = panelOffsets(shape)
  const fixed = fixedOffsets(shape)
  const prefix = `model.layers.${layer}`
  const at = layer * offsets.layerStride
  const product = (panels: number, module: string, names: readonly (keyof typeof sizes)[]) => {
    let first = 0
    const columns = names.reduce((sum, name) => sum + sizes[name][1], 0)
    return names.map(name => {
      const [inputs, outputs] = sizes[name]
      const place = { name: `${prefix}.${module}.${name}.weight`, inputs, outputs, columns, first }
      first += outputs
      return { ...place, panels: at + panels }
    })
  }
  const start = layer * fixed.layerStride
  const vector = (name: string, size: number, offset: number, added = 0): VectorPlace => {
    return { name: `${prefix}.${name}`, size, offset: start + offset, added }
  }
  const one = family.normsAddOne ? 1 : 0
  return {
    maps: [
      ...product(offsets.qkv, 'self_attn', ['q_proj', 'k_proj', 'v_proj']),
      ...product(offsets.out, 'self_attn', ['o_proj']),
      ...product(offsets.gateUp, 'mlp', ['gate_proj', 'up_proj']),
      ...product(offsets.down, 'mlp', ['down_proj']),
    ],
    vectors: [
      vector('input_layernorm.weight', width, fixed.norm1, one),
      vector('post_attention_layernorm.weight', width, fixed.norm2, one),
      ...headNorms(family, vector, [fixed.queryNorm, fixed.keyNorm]),
      ...biases(shape, vector),
    ],
  }
}

type MakeVector = (name: string, size: number, offset: number, added?: number) => VectorPlace

function headNorms(
  { headNorms: isThere, headSize, normsAddOne }: Family,
  vector: MakeVector,
  [query, key]: readonly [number, number],
): VectorPlace[] {
  if (!isThere) return []
  const one = normsAddOne ? 1 : 0
  return [
    vector('self_attn.q_norm.weight', headSize, query, one),
    vector('self_attn.k_norm.weight', headSize, key, one),
  ]
}

function biases(shape: ModelShape, vector: MakeVector): VectorPlace[] {
  const { width, hidden } = shape
  const { queries, keysAndValues, output, unit } = shape.family!.biases
  const { qkvBias, outBias, gateUpBias, downBias } = fixedOffsets(shape)
  const sizes = mapSizes(shape)
  const [q, k] = [sizes.q_proj[1], sizes.k_proj[1]]
  return [
    ...(queries ? [vector('self_attn.q_proj.bias', q, qkvBias)] : []),
    ...(keysAndValues
      ? [
          vector('self_attn.k_proj.bias', k, qkvBias + q),
          vector('self_attn.v_proj.bias', k, qkvBias + q + k),
        ]
      : []),
    ...(output ? [vector('self_attn.o_proj.bias', width, outBias)] : []),
    ...(unit
      ? [
          vector('mlp.gate_proj.bias', hidden, gateUpBias),
          vector('mlp.up_proj.bias', hidden, gateUpBias + hidden),
          vector('mlp.down_proj.bias', width, downBias),
        ]
      : []),
  ]
}

/** Checks that a file has exactly the tensors of a shape, and says how its weights lie in memory. */
export function checkTensors(file: WeightsFile, shape: ModelShape): WeightType {
  const { maps, vectors, embedding } = frozenPlaces(shape)
  const { width, vocabulary } = shape
  const wanted = new Map<string, readonly number[]>([
    ...maps.map(({ name, inputs, outputs }) => [name, [outputs, inputs]] as const),
    ...vectors.map(({ name, size }) => [name, [size]] as const),
    ...(embedding === undefined ? [] : [[embedding, [vocabulary, width]] as const]),
  ])
  for (const [name, sizes] of wanted) {
    const facts = file.tensors.get(name)
    if (!facts) throw new Error(`${file.source} has no tensor ${name}, which its config promises.`)
    if (facts.shape.join() === sizes.join()) continue
    const shapes = `[${facts.shape.join(', ')}], its config wants [${sizes.join(', ')}]`
    throw new Error(`The tensor ${name} in ${file.source} has the shape ${shapes}.`)
  }
  const isTied = embedding === undefined
  for (const name of file.tensors.keys()) {
    if (wanted.has(name) || idle.test(name) || (isTied && name === 'lm_head.weight')) continue
    throw new Error(`${file.source} has the tensor ${name}, which no model of this kind has.`)
  }
  const types = maps.map(({ name }) => file.tensors.get(name)!.type)
  return types.every(type => type === 'bf16') ? 'bf16' : 'f32'
}

/** Reads the weights of a pretrained model to their places. */
export function loadFrozen(
  heap: Heap,
  file: WeightsFile,
  { plan, kernels }: { readonly plan: Plan; readonly kernels: Kernels },
): void {
  const { maps, vectors, embedding } = frozenPlaces(plan.shape)
  const { frozen } = plan
  for (const { name, size, offset, added } of vectors) {
    const at = frozen.fixed / 4 + offset
    const target = new Float32Array(size)
    file.read(name, 0, target)
    heap.f32.set(added === 0 ? target : target.map(value => value + added), at)
  }
  const read = frozen.type === 'bf16' ? readHalves : readFloats
  for (const place of maps) read(heap, file, { place, frozen, kernels })
  if (embedding !== undefined) {
    const rows = { name: embedding, inputs: plan.shape.width, outputs: plan.shape.vocabulary }
    read(heap, file, { place: rows, frozen, kernels })
  }
}

interface Reading {
  /** A weight in panels, or the embedding's rows. */
  readonly place: MapPlace | Pick<MapPlace, 'name' | 'inputs' | 'outputs'>
  readonly frozen: Plan['frozen']
  readonly kernels: Kernels
}

/** Rows that are read at a time. */
const rowsAtOnce = 256

function readHalves(heap: Heap, file: WeightsFile, reading: Reading): void {
  const { place, frozen } = reading
  const bytes = new Uint16Array(heap.memory.buffer)
  const buffer = new Uint16Array(rowsAtOnce * place.inputs)
  eachRow(place, rowsAtOnce, (first, count) => {
    const rows = buffer.subarray(0, count * place.inputs)
    file.readHalves(place.name, first * place.inputs, rows)
    for (let row = 0; row < count; row++) {
      const { start, step, shift } = columnOf(reading, first + row)
      const base = ('columns' in place ? frozen.panels : frozen.embedding) / 2 + start
      // Eight numbers on, their places repeat.
      for (let turn = 0; turn < 8; turn++) {
        const index = turn * step + shift
        const within = index & 7
        let to = base + (index & ~7) + (within < 4 ? 2 * within : 2 * within - 7)
        const end = (row + 1) * place.inputs
        for (let at = row * place.inputs + turn; at < end; at += 8, to += 8 * step) {
          bytes[to] = rows[at]!
        }
      }
    }
  })
}

function readFloats(heap: Heap, file: WeightsFile, reading: Reading): void {
  const { place, frozen } = reading
  const buffer = new Float32Array(rowsAtOnce * place.inputs)
  eachRow(place, rowsAtOnce, (first, count) => {
    const rows = buffer.subarray(0, count * place.inputs)
    file.read(place.name, first * place.inputs, rows)
    for (let row = 0; row < count; row++) {
      const { start, step, shift } = columnOf(reading, first + row)
      const base = ('columns' in place ? frozen.panels : frozen.embedding) / 4 + start
      for (let at = 0; at < place.inputs; at++) {
        heap.f32[base + at * step + shift] = rows[row * place.inputs + at]!
      }
    }
  })
}

function eachRow(
  { outputs }: Pick<MapPlace, 'outputs'>,
  most: number,
  visit: (first: number, count: number) => void,
): void {
  for (let first = 0; first < outputs; first += most) visit(first, Math.min(most, outputs - first))
}

/** Where a row's numbers go: `start` + number × `step` + `shift`, counted in numbers of a panel. */
function columnOf(
  { place, kernels }: Reading,
  row: number,
): { readonly start: number; readonly step: number; readonly shift: number } {
  const { inputs } = place
  if (!('columns' in place)) return { start: row * inputs, step: 1, shift: 0 }
  const wide = kernels.wideColumns(place.columns)
  const column = place.first + row
  const step = column < wide ? 12 : 8
  const shift = column < wide ? column % 12 : (column - wide) % 8
  return { start: place.panels + (column - shift) * inputs, step, shift }
}
