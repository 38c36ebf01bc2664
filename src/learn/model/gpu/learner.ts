import type { Learner } from '../engine/engine.ts'
import { adapterPlaces, fromTensors, initialise, toTensors } from '../engine/parameters.ts'
import { widthsOf } from '../engine/plan.ts'
import { correctionsOf, notFinite, rateOf } from '../engine/trainer.ts'
import { buildTrie, type Trie } from '../engine/trie.ts'
import type {
  AdapterOrder,
  OptimizerState,
  RowGradients,
  RowNumbers,
  RowOrder,
  UpdateOrder,
} from '../protocol.ts'
import type { Tensor } from '../tensor.ts'
import { Arena } from './arena.ts'
import { type BackwardName, backward, backwardSizes } from './backward.ts'
import { Head, type WantedRow } from './head.ts'
import type { ForwardName, Layers, Pass } from './layers.ts'
import { tokenWords } from './stepper.ts'

type LearnName = ForwardName | BackwardName | 'ids' | 'tokens' | 'keys' | 'values' | 'gradient'

/** Rows that go through the model together, each common beginning once. */
interface Part {
  readonly rows: readonly RowOrder[]
  readonly trie: Trie
  readonly wanted: readonly WantedRow[]
  /** Per wanted number of the rows, in their order: its place among `wanted`. */
  readonly places: readonly number[]
}

/** Bytes of layers' inputs that are kept for the way back. */
const keptBytes = 2 ** 30

/** Workgroups that sum squares. */
const squareGroups = 256

/** Learns on a card: layers' inputs are kept, everything else is computed again on the way back. */
export class CardLearner implements Learner {
  readonly #layers: Layers
  readonly #head: Head
  readonly #arena: Arena<LearnName>
  readonly #paths: Arena<'paths'>
  readonly #inputs: Arena<string>
  readonly #squares: GPUBuffer
  readonly #longest: number
  #places: ReturnType<typeof adapterPlaces> | undefined
  #kept: readonly Part[] = []
  #steps = 0

  constructor(layers: Layers) {
    const { card, shape } = layers
    this.#layers = layers
    this.#head = new Head(layers)
    const { keys } = widthsOf(shape)
    const own = { ids: 1, tokens: tokenWords, keys, values: keys, gradient: shape.width }
    this.#arena = new Arena(card, { ...layers.forwardSizes(), ...backwardSizes(layers), ...own })
    this.#paths = new Arena(card, { paths: 1 })
    const streams = Array.from({ length: shape.layers + 1 }, (_, layer) => {
      return [String(layer), shape.width] as const
    })
    this.#inputs = new Arena(card, Object.fromEntries(streams))
    this.#squares = card.take(squareGroups * 4, 'sums')
    const fitting = Math.floor(keptBytes / ((shape.layers + 1) * shape.width * 4))
    this.#longest = Math.max(Math.min(4096, fitting), shape.context)
  }

  adapt({ shape, factors }: AdapterOrder): void {
    const { card, shape: model, adapter: old } = this.#layers
    if (old) card.free([old.values, old.gradient, old.moment1, old.moment2])
    const places = adapterPlaces(model, shape)
    const { count } = places
    const take = (what: string) => card.take(count * 4, what)
    this.#places = places
    this.#steps = 0
    this.#layers.adapter = {
      ...{ shape, count, values: take('the adapter'), gradient: take("the adapter's gradient") },
      ...{ moment1: take("the optimiser's memory"), moment2: take("the optimiser's memory") },
    }
    const values = new Float32Array(count)
    if ('seed' in factors) initialise(values, places.places, factors.seed)
    else fromTensors(values, places.places, factors.tensors)
    card.write(this.#layers.adapter.values, values)
  }

  async forward(
    rows: readonly RowOrder[],
    { keep }: { readonly keep: boolean },
  ): Promise<RowNumbers> {
    const parts = cutRows(rows, this.#longest)
    const logprobs: number[] = []
    const entropies: number[] = []
    for (const part of parts) {
      const found = await this.#forward(part)
      for (const place of part.places) {
        logprobs.push(found[place]!.logprob)
        entropies.push(found[place]!.entropy)
      }
    }
    this.#kept = keep ? parts : []
    const sum = (of: (trie: Trie) => number) =>
      parts.reduce((total, { trie }) => total + of(trie), 0)
    return {
      logprobs: Float32Array.from(logprobs),
      entropies: Float32Array.from(entropies),
      computed: { tokens: sum(({ ids }) => ids.length), of: sum(({ before }) => before) },
    }
  }

  async #forward(part: Part) {
    const { card, shape } = this.#layers
    const { pass, of, inputs } = this.#lay(part)
    this.#layers.embed(pass, of.ids, inputs[0]!)
    const cells = { keys: of.keys, values: of.values }
    for (let layer = 0; layer < shape.layers; layer++) {
      const [input, out] = [inputs[layer]!, inputs[layer + 1]!]
      this.#layers.forward(layer, pass, { input, out, arrays: of, cells })
    }
    card.check()
    return await this.#head.forward(part.wanted, inputs.at(-1)!)
  }

  /** Writes a part down. */
  #lay({ trie }: Part) {
    const { card, shape } = this.#layers
    const count = trie.ids.length
    const of = this.#arena.for(count)
    const kept = this.#inputs.for(count)
    const inputs = Array.from({ length: shape.layers + 1 }, (_, layer) => kept[layer]!)
    const { tokens, paths } = describe(trie)
    const { paths: pathList } = this.#paths.for(paths.length)
    card.write(of.ids, new Uint32Array(trie.ids))
    card.write(of.tokens, tokens)
    card.write(pathList, paths)
    const pass: Pass = { count, tokens: of.tokens, paths: pathList, shift: 0 }
    return { pass, of, inputs }
  }

  async backward({ logprobs, entropies }: RowGradients): Promise<void> {
    const parts = this.#kept
    this.#kept = []
    this.#needTrained()
    let at = 0
    for (const part of parts) {
      // Of several parts only the last one's inputs are still there.
      if (parts.length > 1) await this.#forward(part)
      const slopes = new Float32Array(part.wanted.length * 2)
      for (const place of part.places) {
        slopes[2 * place]! += logprobs[at]!
        slopes[2 * place + 1]! += entropies[at]!
        at++
      }
      this.#backward(part, slopes)
    }
    await this.#layers.card.settle()
  }

  #backward(part: Part, slopes: Float32Array): void {
    const { card, shape } = this.#layers
    const { pass, of, inputs } = this.#lay(part)
    const { gradient } = of
    // Nothing has a gradient yet but what the head gives.
    card.each('fill', [this.#layers.weights.fixed, gradient], {
      ...{ count: pass.count * shape.width, width: 1, start: 0, beta: 0, by: 0 },
    })
    this.#head.backward(slopes, [inputs.at(-1)!, gradient])
    const cells = { keys: of.keys, values: of.values }
    for (let layer = shape.layers - 1; layer >= 0; layer--) {
      const input = inputs[layer]!
      this.#layers.forward(layer, pass, { input, out: inputs[layer + 1]!, arrays: of, cells })
      backward(this.#layers, layer, { pass, input, arrays: of, cells, gradient })
    }
  }

  #needTrained() {
    const { adapter } = this.#layers
    if (adapter && this.#places) return { ...adapter, ...this.#places }
    throw new Error('Nothing of this model is trained: give it an adapter first.')
  }

  async update(order: UpdateOrder): Promise<number> {
    const { card } = this.#layers
    const { count, values, gradient, moment1, moment2 } = this.#needTrained()
    const numbers = { count, groups: squareGroups }
    card.run('squares', [gradient, this.#squares], numbers, [squareGroups, 1])
    const sums = new Float32Array(await card.read(this.#squares, squareGroups * 4))
    const norm = Math.sqrt(sums.reduce((total, sum) => total + sum, 0))
    if (!Number.isFinite(norm)) {
      card.write(gradient, new Float32Array(count))
      throw notFinite()
    }
    this.#steps++
    const { beta1, beta2, epsilon, clip, weightDecay: decay } = order
    card.each('update', [values, gradient, moment1, moment2], {
      ...{ count, rate: rateOf(order, this.#steps), decay, beta1, beta2, epsilon },
      ...{ scale: norm > clip ? clip / norm : 1, ...correctionsOf(order, this.#steps) },
    })
    await card.settle()
    return norm
  }

  async tensors(): Promise<readonly Tensor[]> {
    return this.#layers.adapter ? await this.#read('values') : []
  }

  takeTensors(tensors: readonly Tensor[]): void {
    if (!this.#places) {
      throw new Error('A pretrained model takes an adapter, and it has none yet.')
    }
    this.#write('values', tensors)
  }

  async state(version: number): Promise<OptimizerState> {
    const [moment1, moment2] = [await this.#read('moment1'), await this.#read('moment2')]
    return { steps: this.#steps, version, moment1, moment2 }
  }

  takeState(state: OptimizerState): void {
    for (const name of ['moment1', 'moment2'] as const) this.#write(name, state[name])
    this.#steps = state.steps
  }

  async #read(name: 'values' | 'moment1' | 'moment2'): Promise<Tensor[]> {
    const { count, places, [name]: buffer } = this.#needTrained()
    return toTensors(new Float32Array(await this.#layers.card.read(buffer, count * 4)), places)
  }

  #write(name: 'values' | 'moment1' | 'moment2', tensors: readonly Tensor[]): void {
    const { count, places, [name]: buffer } = this.#needTrained()
    const numbers = new Float32Array(count)
    fromTensors(numbers, places, tensors)
    this.#layers.card.write(buffer, numbers)
  }
}

/** Rows in parts of up to so many tokens; a longer row is a part of its own. */
function cutRows(rows: readonly RowOrder[], longest: number): readonly Part[] {
  const parts: Part[] = []
  for (let first = 0; first < rows.length; ) {
    let part = partOf(rows.slice(first))
    for (let count = rows.length - first; count > 1 && part.trie.ids.length > longest; ) {
      count = Math.max(1, Math.floor((count * longest) / part.trie.ids.length))
      part = partOf(rows.slice(first, first + count))
    }
    parts.push(part)
    first += part.rows.length
  }
  return parts
}

function partOf(rows: readonly RowOrder[]): Part {
  const trie = buildTrie(rows, true)
  const known = new Map<string, { readonly row: WantedRow; readonly numbers: number[] }>()
  let count = 0
  rows.forEach(({ ids, mask, temperature }, row) => {
    for (let at = 1; at < mask.length; at++) {
      if (mask[at] === 0) continue
      const token = trie.places[row]![at - 1]!
      const key = `${token} ${ids[at]} ${temperature}`
      const same = known.get(key)
      if (same) same.numbers.push(count)
      else known.set(key, { row: { token, target: ids[at]!, temperature }, numbers: [count] })
      count++
    }
  })
  // Rows of one token follow each other.
  const sorted = [...known.values()].sort((a, b) => a.row.token - b.row.token)
  const places = new Array<number>(count)
  sorted.forEach(({ numbers }, place) => {
    for (const number of numbers) places[number] = place
  })
  return { rows, trie, wanted: sorted.map(({ row }) => row), places }
}

/** A trie as kernels read it: what follows a token lies behind it without a gap. */
function describe({ ids, parents, positions }: Trie) {
  const ends = Uint32Array.from(ids, (_, at) => at + 1)
  for (let at = ids.length - 1; at >= 0; at--) {
    const parent = parents[at]!
    if (parent >= 0) ends[parent] = Math.max(ends[parent]!, ends[at]!)
  }
  const tokens = new Uint32Array(ids.length * tokenWords)
  const paths: number[] = []
  for (let first = 0; first < ids.length; ) {
    let last = first
    while (last + 1 < ids.length && parents[last + 1] === last) last++
    const start = paths.length
    paths.length += positions[last]! + 1
    for (let at = last; at >= 0; at = parents[at]!) paths[start + positions[at]!] = at
    for (let at = first; at <= last; at++) {
      tokens.set([positions[at]!, at, start, ends[at]!], at * tokenWords)
    }
    first = last + 1
  }
  return { tokens, paths: Uint32Array.from(paths) }
}
