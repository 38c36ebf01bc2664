import { frozenCacheBytes } from '../engine/memory.ts'
import { widthsOf } from '../engine/plan.ts'
import { nextRandom, type Sequence, type TopLogprob } from '../engine/sequence.ts'
import { likeliestOf, type Part, type Stepper, slotsFor } from '../engine/stepper.ts'
import { BLOCK } from '../kernels/layout.ts'
import type { TokenNews } from '../protocol.ts'
import type { ModelShape } from '../shape.ts'
import { Arena } from './arena.ts'
import { type FoundRow, Head, type WantedRow } from './head.ts'
import type { Cells, ForwardName, Layers } from './layers.ts'

/** Contexts that the key-value cache holds at most: more are seldom asked for at once. */
const cachedContexts = 32

/** Blocks of keys and values that a card keeps. */
export function cardBlocks({ context, layers, ...shape }: ModelShape): number {
  const { keys } = widthsOf({ context, layers, ...shape })
  const perContext = Math.ceil(context / BLOCK) + 1
  const fitting = Math.floor(frozenCacheBytes / (layers * 2 * BLOCK * keys * 4))
  return Math.max(perContext + 1, Math.min(fitting, cachedContexts * perContext))
}

/** Words of a token as kernels read it. */
export const tokenWords = 4

type StepName = ForwardName | 'ids' | 'tokens' | 'stream'

/** Steps of sampling on a card; only what was drawn comes back. */
export class CardStepper implements Stepper {
  readonly #layers: Layers
  readonly #head: Head
  readonly #arena: Arena<StepName>
  readonly #paths: Arena<'paths'>
  readonly #cells: readonly Cells[]
  readonly #block: GPUBuffer
  readonly slots: number
  readonly blocks: number
  readonly context: number
  #found: readonly FoundRow[] = []
  #logits = new Map<number, Float32Array>()

  constructor(layers: Layers) {
    const { card, shape } = layers
    this.#layers = layers
    this.#head = new Head(layers)
    this.context = shape.context
    this.slots = Math.min(slotsFor(shape.vocabulary), this.#head.rowsAtOnce)
    this.blocks = cardBlocks(shape)
    const bytes = this.blocks * BLOCK * widthsOf(shape).keys * 4
    this.#cells = Array.from({ length: shape.layers }, () => {
      return { keys: card.take(bytes, 'keys'), values: card.take(bytes, 'values') }
    })
    this.#block = card.take(bytes / this.blocks, 'a block')
    const own = { ids: 1, tokens: tokenWords, stream: shape.width }
    this.#arena = new Arena(card, { ...layers.forwardSizes(), ...own })
    this.#paths = new Arena(card, { paths: 1 })
  }

  next(running: Map<number, Sequence>): readonly Sequence[] {
    return [...running.values()]
  }

  place(): void {}

  copyBlock(from: number, to: number): void {
    const { card, shape } = this.#layers
    const bytes = BLOCK * widthsOf(shape).keys * 4
    for (const { keys, values } of this.#cells) {
      for (const cells of [keys, values]) {
        // A card copies from one array to another, not within one.
        card.copy(cells, this.#block, [from * bytes, 0, bytes])
        card.copy(this.#block, cells, [0, to * bytes, bytes])
      }
    }
  }

  async step(parts: readonly Part[]): Promise<'done'> {
    const { card, shape } = this.#layers
    const { ids, tokens, paths, wanted } = describe(parts)
    const of = this.#arena.for(ids.length)
    const { paths: pathList } = this.#paths.for(paths.length)
    card.write(of.ids, ids)
    card.write(of.tokens, tokens)
    card.write(pathList, paths)
    const shift = Math.log2(BLOCK)
    const pass = { count: ids.length, tokens: of.tokens, paths: pathList, shift }
    this.#layers.embed(pass, of.ids, of.stream)
    for (let layer = 0; layer < shape.layers; layer++) {
      const cells = this.#cells[layer]!
      const through = { input: of.stream, out: of.stream, arrays: of, cells }
      this.#layers.forward(layer, pass, through)
    }
    this.#found = await this.#head.forward(wanted, of.stream)
    this.#logits = new Map()
    for (const { row, sequence } of parts) {
      if (row === undefined || sequence.order.topLogprobs === 0) continue
      this.#logits.set(row, await this.#head.readLogits(row))
    }
    return 'done'
  }

  token(row: number): TokenNews {
    const { id, logprob, entropy } = this.#found[row]!
    return { id, logprob, entropy }
  }

  likeliest(row: number, count: number): TopLogprob[] {
    const logits = this.#logits.get(row)!
    const { sum } = this.#found[row]!
    return likeliestOf(logits, count).map(id => ({ id, logprob: Math.fround(logits[id]! - sum) }))
  }
}

/** A step as kernels read it. */
function describe(parts: readonly Part[]) {
  const total = parts.reduce((sum, { count }) => sum + count, 0)
  const ids = new Uint32Array(total)
  const tokens = new Uint32Array(total * tokenWords)
  const paths: number[] = []
  const wanted: WantedRow[] = []
  let at = 0
  for (const { sequence, count, row } of parts) {
    const { computed, path, order } = sequence
    for (let position = computed; position < computed + count; position++) {
      ids[at] = sequence.tokens[position]!
      const cell = path[Math.floor(position / BLOCK)]!.block * BLOCK + (position % BLOCK)
      tokens.set([position, cell, paths.length, at + 1], at * tokenWords)
      at++
    }
    for (const { block } of path) paths.push(block)
    if (row === undefined) continue
    const { temperature, topK, topP, minP } = order
    const target = { random: nextRandom(sequence), topK, topP, minP }
    wanted.push({ token: at - 1, target, temperature })
  }
  return { ids, tokens, paths: Uint32Array.from(paths), wanted }
}
