import type { AdapterMap, AdapterShape } from '../adapter.ts'
import { adapterOffsets, mapSizes } from '../engine/parameters.ts'
import { eachAngle, fixedOffsets, widthsOf } from '../engine/plan.ts'
import { type ModelShape, up8 } from '../shape.ts'
import type { Card } from './card.ts'
import type { CardWeights, Slice } from './weights.ts'

/** What is trained, on a card: numbers as `adapterPlaces` lays them out. */
export interface CardAdapter {
  readonly shape: AdapterShape
  readonly count: number
  readonly values: GPUBuffer
  readonly gradient: GPUBuffer
  readonly moment1: GPUBuffer
  readonly moment2: GPUBuffer
}

/** Tokens that go through a model together. */
export interface Pass {
  readonly count: number
  readonly tokens: GPUBuffer
  readonly paths: GPUBuffer
  /** The logarithm of the places that one number of a path stands for. */
  readonly shift: number
}

/** Keys and values of a layer, cell after cell. */
export interface Cells {
  readonly keys: GPUBuffer
  readonly values: GPUBuffer
}

/** A layer's map, with what goes in and comes out. */
export interface Mapping {
  readonly layer: number
  readonly map: AdapterMap
  readonly rows: number
  readonly input: GPUBuffer
  readonly output: GPUBuffer
}

/** A product: C = alpha · A B + beta · C, by where each begins and its steps. */
export interface Product {
  readonly sizes: readonly [rows: number, columns: number, inner: number]
  readonly a: Operand
  readonly b: Operand & { readonly halves?: boolean }
  readonly c: { readonly buffer: GPUBuffer; readonly start?: number; readonly row: number }
  readonly alpha?: number
  readonly beta?: number
}

interface Operand {
  readonly buffer: GPUBuffer
  readonly start?: number
  /** From one row of A, or column of B, to the next. */
  readonly step: number
  /** Along the numbers that are summed. */
  readonly inner: number
}

const modules: Readonly<Record<AdapterMap, string>> = {
  ...{ q_proj: 'self_attn', k_proj: 'self_attn', v_proj: 'self_attn', o_proj: 'self_attn' },
  ...{ gate_proj: 'mlp', up_proj: 'mlp', down_proj: 'mlp' },
}

/** Arrays of a pass, by the numbers that each token has in them. */
export type Arrays<Name extends string> = Readonly<Record<Name, GPUBuffer>>

/** What a layer computes on its way forward. */
export type ForwardName =
  | 'normed1'
  | 'q'
  | 'k'
  | 'v'
  | 'qNormed'
  | 'kNormed'
  | 'qTurned'
  | 'attended'
  | 'stats'
  | 'middle'
  | 'normed2'
  | 'gate'
  | 'up'
  | 'unit'
  | 'low'

/** The layers of a pretrained model on a card. */
export class Layers {
  readonly card: Card
  readonly shape: ModelShape
  readonly weights: CardWeights
  readonly angles: GPUBuffer
  adapter: CardAdapter | undefined
  readonly #fixed: ReturnType<typeof fixedOffsets>

  constructor(card: Card, shape: ModelShape, weights: CardWeights) {
    this.card = card
    this.shape = shape
    this.weights = weights
    this.#fixed = fixedOffsets(shape)
    const angles = new Float32Array(shape.context * shape.family!.headSize)
    eachAngle(shape, (at, cosine, sine) => {
      angles[2 * at] = cosine
      angles[2 * at + 1] = sine
    })
    this.angles = card.take(angles.byteLength, 'angles')
    card.write(this.angles, angles)
  }

  /** Numbers that each token has in the arrays of `forward`. */
  forwardSizes(): Readonly<Record<ForwardName, number>> {
    const { width, hidden, heads } = this.shape
    const { queries, keys } = widthsOf(this.shape)
    return {
      ...{ normed1: width, q: queries, k: keys, v: keys, qNormed: queries, kNormed: keys },
      ...{ qTurned: queries, attended: queries, stats: 2 * heads, middle: width, normed2: width },
      ...{ gate: hidden, up: hidden, unit: hidden, low: 256 },
    }
  }

  /** The residual stream's beginning. */
  embed(pass: Pass, ids: GPUBuffer, to: GPUBuffer): void {
    const { width, family } = this.shape
    const { embedding, halves } = this.weights
    for (const { buffer, first, rows } of embedding) {
      this.card.each('embed', [ids, buffer, to], {
        ...{ count: pass.count * width, width, halves: Number(halves), first, rows },
        scale: family!.embeddingScale,
      })
    }
  }

  /** One layer: from its input to `out`, which may be the same. */
  forward(
    layer: number,
    pass: Pass,
    {
      input,
      out,
      arrays: of,
      cells,
    }: {
      readonly input: GPUBuffer
      readonly out: GPUBuffer
      readonly arrays: Arrays<ForwardName>
      readonly cells: Cells
    },
  ): void {
    const { width, hidden, heads, family } = this.shape
    const { keyHeads, headNorms } = family!
    const { count: rows } = pass
    const { norm1, norm2, queryNorm, keyNorm } = this.#fixed
    this.norm([rows, 1], [input, of.normed1], { width, weight: this.at(layer, norm1) })
    for (const [map, output] of [
      ['q_proj', of.q],
      ['k_proj', of.k],
      ['v_proj', of.v],
    ] as const)
      this.map({ layer, map, rows, input: of.normed1, output }, { low: of.low, beta: 0 })
    const size = family!.headSize
    if (headNorms) {
      this.norm([rows, heads], [of.q, of.qNormed], {
        width: size,
        weight: this.at(layer, queryNorm),
      })
      this.norm([rows, keyHeads], [of.k, of.kNormed], {
        width: size,
        weight: this.at(layer, keyNorm),
      })
    }
    this.turn(pass, [headNorms ? of.qNormed : of.q, of.qTurned], { heads, direction: 1 })
    const cached = { heads: keyHeads, scatters: true }
    this.turn(pass, [headNorms ? of.kNormed : of.k, cells.keys], { ...cached, direction: 1 })
    this.turn(pass, [of.v, cells.values], { ...cached, direction: 0 })
    this.card.run(
      'attend',
      [pass.tokens, pass.paths, of.qTurned, cells.keys, cells.values, of.attended, of.stats],
      this.attention(layer, pass),
      [rows, heads],
    )
    this.card.copy(input, of.middle, [0, 0, rows * width * 4])
    const onward = { layer, rows, output: of.middle }
    this.map({ ...onward, map: 'o_proj', input: of.attended }, { low: of.low, beta: 1 })
    this.norm([rows, 1], [of.middle, of.normed2], { width, weight: this.at(layer, norm2) })
    const inward = { layer, rows, input: of.normed2 }
    this.map({ ...inward, map: 'gate_proj', output: of.gate }, { low: of.low, beta: 0 })
    this.map({ ...inward, map: 'up_proj', output: of.up }, { low: of.low, beta: 0 })
    const tanh = Number(family!.activation === 'gelu-tanh')
    this.card.each('gate', [of.gate, of.up, of.unit], { count: rows * hidden, tanh })
    this.card.copy(of.middle, out, [0, 0, rows * width * 4])
    const last = { layer, rows, map: 'down_proj', input: of.unit, output: out } as const
    this.map(last, { low: of.low, beta: 1 })
  }

  /** Where a layer's norm or bias lies. */
  at(layer: number, offset: number): number {
    return layer * this.#fixed.layerStride + offset
  }

  /** Numbers of attention. */
  attention(layer: number, { shift }: Pass): Readonly<Record<string, number>> {
    const { heads, family } = this.shape
    const { keyHeads, headSize: size, windows } = family!
    return { heads, keyHeads, size, shift, window: windows[layer]!, scale: 1 / Math.sqrt(size) }
  }

  norm(
    rows: readonly [number, number],
    [from, to]: readonly [GPUBuffer, GPUBuffer],
    { width, weight }: { readonly width: number; readonly weight: number },
  ): void {
    const { epsilon } = this.shape.family!
    this.card.run('norm', [from, this.weights.fixed, to], { width, weight, epsilon }, rows)
  }

  turn(
    { count, tokens }: Pass,
    [from, to]: readonly [GPUBuffer, GPUBuffer],
    of: { readonly heads: number; readonly direction: number; readonly scatters?: boolean },
  ): void {
    const size = this.shape.family!.headSize
    const width = of.heads * size
    this.card.each('turn', [tokens, this.angles, from, to], {
      ...{ count: (count * width) / 2, width, size, direction: of.direction },
      scatters: Number(of.scatters ?? false),
    })
  }

  /** A map with its bias and its adapter, added to `beta` times what is there. */
  map(mapping: Mapping, { low, beta }: { readonly low: GPUBuffer; readonly beta: number }): void {
    const { layer, map, rows, input, output } = mapping
    const [inputs, outputs] = mapSizes(this.shape)[map]
    const bias = this.#biasOf(map)
    if (bias !== undefined) {
      this.card.each('fill', [this.weights.fixed, output], {
        ...{ count: rows * outputs, width: outputs, start: this.at(layer, bias), by: 1, beta },
      })
    }
    for (const { buffer, first, rows: columns } of this.slicesOf(layer, map)) {
      this.product({
        sizes: [rows, columns, inputs],
        a: { buffer: input, step: inputs, inner: 1 },
        b: { buffer, step: inputs, inner: 1, halves: this.weights.halves },
        c: { buffer: output, start: first, row: outputs },
        beta: bias === undefined ? beta : 1,
      })
    }
    const factors = this.factorsOf(layer, map)
    if (!factors) return
    const { values, rank, up, scale } = factors
    this.lower(mapping, low)
    this.product({
      sizes: [rows, outputs, rank],
      a: { buffer: low, step: rank, inner: 1 },
      b: { buffer: values, start: up, step: 1, inner: outputs },
      c: { buffer: output, row: outputs },
      ...{ alpha: scale, beta: 1 },
    })
  }

  /** What the first factor makes of a map's input. */
  lower({ layer, map, rows, input }: Mapping, low: GPUBuffer): void {
    const { values, rank, down } = this.factorsOf(layer, map)!
    const [inputs] = mapSizes(this.shape)[map]
    this.product({
      sizes: [rows, rank, inputs],
      a: { buffer: input, step: inputs, inner: 1 },
      b: { buffer: values, start: down, step: 1, inner: rank },
      c: { buffer: low, row: rank },
    })
  }

  slicesOf(layer: number, map: AdapterMap): readonly Slice[] {
    return this.weights.maps.get(`model.layers.${layer}.${modules[map]}.${map}.weight`)!
  }

  /** Where the factors of a map lie; undefined if the adapter changes no such map. */
  factorsOf(layer: number, map: AdapterMap) {
    if (!this.adapter) return undefined
    const { shape, values, gradient } = this.adapter
    const { inner, stride } = adapterOffsets(this.shape, shape)
    const found = inner.find(each => each.map === map)
    if (!found) return undefined
    const [down, up] = [layer * stride + found.down, layer * stride + found.up]
    const { rank, alpha } = shape
    return { values, gradient, rank: up8(rank), scale: alpha / rank, down, up }
  }

  #biasOf(map: AdapterMap): number | undefined {
    const { queries, keysAndValues, output, unit } = this.shape.family!.biases
    const { qkvBias, outBias, gateUpBias, downBias } = this.#fixed
    const { queries: q, keys: k } = widthsOf(this.shape)
    const places: Readonly<Record<AdapterMap, readonly [boolean, number]>> = {
      q_proj: [queries, qkvBias],
      k_proj: [keysAndValues, qkvBias + q],
      v_proj: [keysAndValues, qkvBias + q + k],
      o_proj: [output, outBias],
      gate_proj: [unit, gateUpBias],
      up_proj: [unit, gateUpBias + this.shape.hidden],
      down_proj: [unit, downBias],
    }
    const [isThere, place] = places[map]
    return isThere ? place : undefined
  }

  product({ sizes, a, b, c, alpha = 1, beta = 0 }: Product): void {
    const [rows, columns, inner] = sizes
    this.card.run(
      'product',
      [a.buffer, b.buffer, c.buffer],
      {
        ...{ rows, columns, inner, halves: Number(b.halves ?? false), alpha, beta },
        ...{ a: a.start ?? 0, aRow: a.step, aInner: a.inner },
        ...{ b: b.start ?? 0, bColumn: b.step, bInner: b.inner },
        ...{ c: c.start ?? 0, cRow: c.row },
      },
      [Math.ceil(columns / 32), Math.ceil(rows / 32)],
    )
  }
}
