import { mapSizes } from '../engine/parameters.ts'
import { fixedOffsets, widthsOf } from '../engine/plan.ts'
import type { Arrays, Cells, ForwardName, Layers, Mapping, Pass } from './layers.ts'

/** What a layer computes on its way back. */
export type BackwardName =
  | 'low2'
  | 'dUnit'
  | 'dNormed'
  | 'dAttended'
  | 'dqTurned'
  | 'dqNormed'
  | 'dq'
  | 'dkTurned'
  | 'dkNormed'
  | 'dk'
  | 'dv'

/** Numbers that each token has in the arrays of `backward`. */
export function backwardSizes({ shape }: Layers): Readonly<Record<BackwardName, number>> {
  const { queries, keys } = widthsOf(shape)
  const q = { dAttended: queries, dqTurned: queries, dqNormed: queries, dq: queries }
  const k = { dkTurned: keys, dkNormed: keys, dk: keys, dv: keys }
  return { low2: 256, dUnit: shape.hidden, dNormed: shape.width, ...q, ...k }
}

interface Back {
  readonly pass: Pass
  /** What went into the layer, whose arrays are as `forward` left them. */
  readonly input: GPUBuffer
  readonly arrays: Arrays<ForwardName | BackwardName>
  readonly cells: Cells
  /** The gradient of what came out, which becomes that of what went in. */
  readonly gradient: GPUBuffer
}

/** One layer back; adds to the adapter's gradient. */
export function backward(layers: Layers, layer: number, back: Back): void {
  const { card, shape } = layers
  const { hidden, family } = shape
  const { pass, arrays: of, gradient } = back
  const { count: rows } = pass
  const fixed = fixedOffsets(shape)
  const down = { layer, map: 'down_proj', rows, input: of.unit, output: gradient } as const
  mapBack(layers, down, { ...back, into: of.dUnit, beta: 0 })
  const tanh = Number(family!.activation === 'gelu-tanh')
  card.each('gateBack', [of.dUnit, of.gate, of.up], { count: rows * hidden, tanh })
  const inward = { layer, rows, input: of.normed2 }
  const gate = { ...inward, map: 'gate_proj', output: of.gate } as const
  mapBack(layers, gate, { ...back, into: of.dNormed, beta: 0 })
  const up = { ...inward, map: 'up_proj', output: of.up } as const
  mapBack(layers, up, { ...back, into: of.dNormed, beta: 1 })
  normBack(layers, [of.middle, of.dNormed, gradient], {
    ...{ rows: [rows, 1], width: shape.width, beta: 1, weight: layers.at(layer, fixed.norm2) },
  })
  const out = { layer, map: 'o_proj', rows, input: of.attended, output: gradient } as const
  mapBack(layers, out, { ...back, into: of.dAttended, beta: 0 })
  attentionBack(layers, layer, back)
  const maps = [
    ['q_proj', of.dq],
    ['k_proj', of.dk],
    ['v_proj', of.dv],
  ] as const
  maps.forEach(([map, output], index) => {
    const mapping = { layer, map, rows, input: of.normed1, output }
    mapBack(layers, mapping, { ...back, into: of.dNormed, beta: Math.min(index, 1) })
  })
  normBack(layers, [back.input, of.dNormed, gradient], {
    ...{ rows: [rows, 1], width: shape.width, beta: 1, weight: layers.at(layer, fixed.norm1) },
  })
}

/** From the gradient of what heads attended to those of queries, keys and values before they were normed. */
function attentionBack(layers: Layers, layer: number, { pass, arrays: of, cells }: Back): void {
  const { card, shape } = layers
  const { heads, family } = shape
  const { keyHeads, headSize: width, headNorms } = family!
  const { count: rows, tokens, paths } = pass
  const { queryNorm, keyNorm } = fixedOffsets(shape)
  card.run('along', [of.attended, of.dAttended, of.stats], { size: width }, [rows, heads])
  const numbers = layers.attention(layer, pass)
  const read = [of.qTurned, cells.keys, cells.values, of.dAttended, of.stats]
  card.run('attendBackQueries', [tokens, paths, ...read, of.dqTurned], numbers, [rows, heads])
  card.run('attendBackKeys', [tokens, ...read, of.dkTurned, of.dv], numbers, [rows, keyHeads])
  const [dq, dk] = headNorms ? [of.dqNormed, of.dkNormed] : [of.dq, of.dk]
  layers.turn(pass, [of.dqTurned, dq], { heads, direction: -1 })
  layers.turn(pass, [of.dkTurned, dk], { heads: keyHeads, direction: -1 })
  if (!headNorms) return
  const [query, key] = [layers.at(layer, queryNorm), layers.at(layer, keyNorm)]
  const apart = { width, beta: 0 }
  normBack(layers, [of.q, dq, of.dq], { ...apart, rows: [rows, heads], weight: query })
  normBack(layers, [of.k, dk, of.dk], { ...apart, rows: [rows, keyHeads], weight: key })
}

function normBack(
  { card, shape, weights }: Layers,
  [x, dy, dx]: readonly [GPUBuffer, GPUBuffer, GPUBuffer],
  of: {
    readonly rows: readonly [number, number]
    readonly width: number
    readonly weight: number
    readonly beta: number
  },
): void {
  const { rows, ...numbers } = of
  const { epsilon } = shape.family!
  card.run('normBack', [x, weights.fixed, dy, dx], { ...numbers, epsilon }, rows)
}

/** A map back: the gradient of its input, added to `beta` times what is there, and those of its factors. */
function mapBack(
  layers: Layers,
  mapping: Mapping,
  { into, beta, arrays: of }: Pick<Back, 'arrays'> & { into: GPUBuffer; beta: number },
): void {
  const { layer, map, rows, input, output: slope } = mapping
  const [inputs, outputs] = mapSizes(layers.shape)[map]
  layers.slicesOf(layer, map).forEach(({ buffer, first, rows: some }, slice) => {
    layers.product({
      sizes: [rows, inputs, some],
      a: { buffer: slope, start: first, step: outputs, inner: 1 },
      b: { buffer, step: 1, inner: inputs, halves: layers.weights.halves },
      c: { buffer: into, row: inputs },
      beta: slice === 0 ? beta : 1,
    })
  })
  const factors = layers.factorsOf(layer, map)
  if (!factors) return
  const { values, gradient, rank, scale: alpha, down, up } = factors
  const sum = { beta: 1 }
  layers.lower(mapping, of.low)
  layers.product({
    sizes: [rank, outputs, rows],
    a: { buffer: of.low, step: 1, inner: rank },
    b: { buffer: slope, step: 1, inner: outputs },
    c: { buffer: gradient, start: up, row: outputs },
    ...{ alpha, ...sum },
  })
  layers.product({
    sizes: [rows, rank, outputs],
    a: { buffer: slope, step: outputs, inner: 1 },
    b: { buffer: values, start: up, step: outputs, inner: 1 },
    c: { buffer: of.low2, row: rank },
    alpha,
  })
  layers.product({
    sizes: [rows, inputs, rank],
    a: { buffer: of.low2, step: rank, inner: 1 },
    b: { buffer: values, start: down, step: rank, inner: 1 },
    c: { buffer: into, row: inputs },
    ...sum,
  })
  layers.product({
    sizes: [inputs, rank, rows],
    a: { buffer: input, step: 1, inner: inputs },
    b: { buffer: of.low2, step: 1, inner: rank },
    c: { buffer: gradient, start: down, row: rank },
    ...sum,
  })
}
