import { describe, expect, it } from 'vitest'
import {
  tinyKernels as kernels,
  openTrainer,
  tinyShape as shape,
} from '../../../../test/tiny-trainer.ts'
import { random, seedOf } from '../../../base/math/random.ts'
import type { RowOrder } from '../protocol.ts'
import { tensorPlaces, toTensors } from './parameters.ts'
import { parameterOffsets } from './plan.ts'

/** Rows of different lengths and temperatures; some longer than a block, one without a mask. */
function makeRows(): RowOrder[] {
  const draw = random(seedOf('rows'))
  return [5, 37, 18, 64, 9].map((length, row) => ({
    ids: Int32Array.from({ length }, () => Math.floor(draw() * shape.vocabulary)),
    mask: Uint8Array.from({ length }, (_, token) => (token > 0 && row < 4 && draw() < 0.7 ? 1 : 0)),
    temperature: [1, 0.7, 1.3, 1, 1][row]!,
  }))
}

/** A row of which about a sixth is wanted. */
function makeLongRow(length: number): RowOrder {
  const draw = random(seedOf('long row'))
  const ids = Int32Array.from({ length }, () => Math.floor(draw() * shape.vocabulary))
  const mask = Uint8Array.from(ids, (_, token) => (token > 0 && draw() < 0.17 ? 1 : 0))
  mask[length - 1] = 1
  return { ids, mask, temperature: 1 }
}

type Weights = ReadonlyMap<string, Float64Array>

/** x · Wᵀ for one vector and a checkpoint's weight. */
function linear(weight: Float64Array, x: readonly number[]): number[] {
  return Array.from({ length: weight.length / x.length }, (_, row) =>
    x.reduce((sum, value, column) => sum + value * weight[row * x.length + column]!, 0),
  )
}

function rmsNorm(weight: Float64Array, x: readonly number[]): number[] {
  const mean = x.reduce((sum, value) => sum + value * value, 0) / x.length
  return x.map((value, at) => (value / Math.sqrt(mean + 1e-6)) * weight[at]!)
}

/** Rotary positions as Llama has them: pairs half a head apart. */
function rotated(x: readonly number[], position: number): number[] {
  const size = shape.width / shape.heads
  const half = size / 2
  return x.map((value, at) => {
    const inside = at % size
    const angle = position * 10_000 ** (-(inside % half) / half)
    const other = inside < half ? -x[at + half]! : x[at - half]!
    return value * Math.cos(angle) + other * Math.sin(angle)
  })
}

interface Past {
  readonly keys: number[][]
  readonly values: number[][]
}

function attention(query: readonly number[], { keys, values }: Past): number[] {
  const size = shape.width / shape.heads
  const shares = Array.from({ length: shape.heads }, (_, head) => {
    const scores = keys.map(key => {
      let sum = 0
      for (let index = head * size; index < (head + 1) * size; index++) {
        sum += query[index]! * key[index]!
      }
      return Math.exp(sum / Math.sqrt(size))
    })
    const total = scores.reduce((sum, score) => sum + score, 0)
    return scores.map(score => score / total)
  })
  return query.map((_, at) =>
    shares[Math.floor(at / size)]!.reduce(
      (sum, share, token) => sum + share * values[token]![at]!,
      0,
    ),
  )
}

/** The whole model in double precision, written for reading: logits after each token of a row. */
function referenceLogits(weights: Weights, ids: Int32Array): number[][] {
  const get = (name: string) => weights.get(name)!
  const pasts: Past[] = Array.from({ length: shape.layers }, () => ({ keys: [], values: [] }))
  return Array.from(ids, (id, position) => {
    const embedding = get('model.embed_tokens.weight')
    let x = Array.from(embedding.subarray(id * shape.width, (id + 1) * shape.width))
    pasts.forEach((past, layer) => {
      const part = (name: string) => get(`model.layers.${layer}.${name}.weight`)
      const normed = rmsNorm(part('input_layernorm'), x)
      past.keys.push(rotated(linear(part('self_attn.k_proj'), normed), position))
      past.values.push(linear(part('self_attn.v_proj'), normed))
      const query = rotated(linear(part('self_attn.q_proj'), normed), position)
      const mixed = linear(part('self_attn.o_proj'), attention(query, past))
      const middle = x.map((value, at) => value + mixed[at]!)
      const again = rmsNorm(part('post_attention_layernorm'), middle)
      const gate = linear(part('mlp.gate_proj'), again)
      const up = linear(part('mlp.up_proj'), again)
      const opened = gate.map((value, at) => (value / (1 + Math.exp(-value))) * up[at]!)
      const down = linear(part('mlp.down_proj'), opened)
      x = middle.map((value, at) => value + down[at]!)
    })
    return linear(embedding, rmsNorm(get('model.norm.weight'), x))
  })
}

/** Log-probabilities and entropies of the wanted tokens, row after row. */
function referenceNumbers(weights: Weights, rows: readonly RowOrder[]) {
  const logprobs: number[] = []
  const entropies: number[] = []
  for (const { ids, mask, temperature } of rows) {
    if (!mask.includes(1)) continue
    const logits = referenceLogits(weights, ids)
    mask.forEach((wanted, token) => {
      if (wanted === 0) return
      const tempered = logits[token - 1]!.map(logit => logit / temperature)
      const total = Math.log(tempered.reduce((sum, logit) => sum + Math.exp(logit), 0))
      const all = tempered.map(logit => logit - total)
      logprobs.push(all[ids[token]!]!)
      entropies.push(-all.reduce((sum, logprob) => sum + Math.exp(logprob) * logprob, 0))
    })
  }
  return { logprobs, entropies }
}

function toWeights(parameters: Float32Array): Map<string, Float64Array> {
  return new Map(
    toTensors(parameters, tensorPlaces(shape)).map(({ name, data }) => [
      name,
      Float64Array.from(data),
    ]),
  )
}

/** Some number for each wanted token, as if a loss had given it. */
function makeSlopes(count: number) {
  const draw = random(seedOf('slopes'))
  return {
    logprobs: Float32Array.from({ length: count }, () => draw() - 0.3),
    entropies: Float32Array.from({ length: count }, () => draw() - 0.5),
  }
}

/** The sum of numbers, each times its slope. */
function lossOf(
  numbers: ReturnType<typeof referenceNumbers>,
  slopes: ReturnType<typeof makeSlopes>,
): number {
  const sum = (values: readonly number[], factors: Float32Array) =>
    values.reduce((total, value, index) => total + value * factors[index]!, 0)
  return sum(numbers.logprobs, slopes.logprobs) + sum(numbers.entropies, slopes.entropies)
}

describe.each(kernels)('the $kernel kernel', ({ module }) => {
  it('computes log-probabilities and entropies as the reference does', async () => {
    const { trainer, parameters } = await openTrainer(module)
    const rows = makeRows()
    const found = trainer.forward(rows, { keep: false })
    const wanted = referenceNumbers(toWeights(parameters), rows)
    expect(found.logprobs).toHaveLength(wanted.logprobs.length)
    found.logprobs.forEach((logprob, index) => {
      expect(logprob).toBeCloseTo(wanted.logprobs[index]!, 5)
      expect(found.entropies[index]).toBeCloseTo(wanted.entropies[index]!, 5)
    })
  })

  it('has the gradient that finite differences have, in every tensor', async () => {
    const { trainer, parameters, gradient } = await openTrainer(module)
    const rows = makeRows()
    const { logprobs } = trainer.forward(rows, { keep: true })
    const slopes = makeSlopes(logprobs.length)
    trainer.backward(slopes)
    const weights = toWeights(parameters)
    const loss = () => lossOf(referenceNumbers(weights, rows), slopes)
    const draw = random(seedOf('directions'))
    for (const { name, data } of toTensors(gradient, tensorPlaces(shape))) {
      // Along one random direction of the whole tensor, and along one axis.
      const size = data.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0)
      const axis = data.findIndex(value => Math.abs(value) === size)
      const directions = [
        Float64Array.from(data, () => Math.sign(draw() - 0.5)),
        Float64Array.from(data, (_, at) => (at === axis ? 1 : 0)),
      ]
      const tensor = weights.get(name)!
      for (const direction of directions) {
        const at = (step: number) => {
          weights.set(
            name,
            tensor.map((value, index) => value + step * direction[index]!),
          )
          return loss()
        }
        const step = 1e-5
        const wanted = (at(step) - at(-step)) / (2 * step)
        weights.set(name, tensor)
        const found = data.reduce((sum, value, index) => sum + value * direction[index]!, 0)
        expect(size, name).toBeGreaterThan(1e-3)
        expect(Math.abs(found - wanted) / size, name).toBeLessThan(2e-3)
      }
    }
  })

  it('agrees with the reference on a row of more tokens than a block of sums has', async () => {
    const context = 320
    const { trainer, parameters, gradient } = await openTrainer(module, 2 ** 24, {
      ...shape,
      context,
    })
    const rows = [makeLongRow(275)]
    const found = trainer.forward(rows, { keep: true })
    const slopes = makeSlopes(found.logprobs.length)
    trainer.backward(slopes)
    const weights = toWeights(parameters)
    const wanted = referenceNumbers(weights, rows)
    found.logprobs.forEach((logprob, index) => {
      expect(logprob).toBeCloseTo(wanted.logprobs[index]!, 5)
      expect(found.entropies[index]).toBeCloseTo(wanted.entropies[index]!, 5)
    })
    // Along one direction of all weights, in which each counts alike.
    const draw = random(seedOf('direction'))
    const slopesOf = toWeights(gradient)
    const directions = new Map(
      [...slopesOf].map(([name, data]) => [name, data.map(() => Math.sign(draw() - 0.5))]),
    )
    const at = (step: number) => {
      const moved = [...weights].map(([name, data]): [string, Float64Array] => {
        const direction = directions.get(name)!
        return [name, data.map((value, index) => value + step * direction[index]!)]
      })
      return lossOf(referenceNumbers(new Map(moved), rows), slopes)
    }
    const step = 1e-5
    const change = (at(step) - at(-step)) / (2 * step)
    const sum = [...slopesOf].reduce(
      (total, [name, data]) =>
        data.reduce((some, value, index) => some + value * directions.get(name)![index]!, total),
      0,
    )
    expect(Math.abs(sum - change) / Math.hypot(...gradient)).toBeLessThan(1e-3)
  })

  it('adds gradients up until the update, and the same bits again for the same rows', async () => {
    const { trainer, gradient } = await openTrainer(module)
    const rows = makeRows()
    const run = () => {
      const { logprobs } = trainer.forward(rows, { keep: true })
      trainer.backward(makeSlopes(logprobs.length))
      return gradient.slice()
    }
    const once = run()
    expect(once.some(value => value !== 0)).toBe(true)
    const twice = run()
    expect(twice).toEqual(once.map(value => value + value))
    const order = { clip: 1, weightDecay: 0, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, warmup: 1 }
    trainer.update({ ...order, learningRate: 0 })
    expect(gradient.every(value => value === 0)).toBe(true)
    expect(run()).toEqual(once)
  })

  it('has the same gradient bits whether activations are kept or computed again', async () => {
    const gradients = [2 ** 24, 200_000, 0].map(async budget => {
      const { trainer, gradient } = await openTrainer(module, budget)
      const { logprobs } = trainer.forward(makeRows(), { keep: true })
      trainer.backward(makeSlopes(logprobs.length))
      return gradient
    })
    const [all, some, none] = await Promise.all(gradients)
    expect(some).toEqual(all)
    expect(none).toEqual(all)
  })

  it('updates as AdamW with clipping, warm-up and decay does', async () => {
    const { trainer, parameters, gradient } = await openTrainer(module)
    const rows = makeRows()
    const { total } = parameterOffsets(shape)
    const moments = { first: new Float64Array(total), second: new Float64Array(total) }
    const norms = new Set(
      tensorPlaces(shape)
        .filter(place => place.kind === 'norm')
        .flatMap(place => Array.from({ length: shape.width }, (_, at) => place.offset + at)),
    )
    const order = {
      learningRate: 0.01,
      clip: 0.5,
      weightDecay: 0.1,
      beta1: 0.9,
      beta2: 0.95,
      epsilon: 1e-8,
      warmup: 3,
    }
    for (let step = 1; step <= 4; step++) {
      const { logprobs } = trainer.forward(rows, { keep: true })
      trainer.backward(makeSlopes(logprobs.length))
      const before = parameters.slice()
      const slope = gradient.slice()
      const norm = Math.hypot(...slope)
      expect(trainer.update(order)).toBeCloseTo(norm, 5)
      const rate = order.learningRate * Math.min(1, step / order.warmup)
      for (let index = 0; index < total; index++) {
        const clipped = (slope[index]! * order.clip) / norm
        const { first, second } = moments
        first[index] = 0.9 * first[index]! + 0.1 * clipped
        second[index] = 0.95 * second[index]! + 0.05 * clipped * clipped
        const m = first[index]! / (1 - 0.9 ** step)
        const v = second[index]! / (1 - 0.95 ** step)
        const decay = norms.has(index) ? 0 : order.weightDecay * before[index]!
        const wanted = before[index]! - rate * (m / (Math.sqrt(v) + 1e-8) + decay)
        // Where the gradient all but vanishes, Adam's direction is rounding noise.
        if (Math.abs(clipped) > 1e-7) expect(parameters[index]).toBeCloseTo(wanted, 4)
      }
    }
  })
})
