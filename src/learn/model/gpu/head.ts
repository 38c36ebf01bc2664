import { inverseTemperature } from '../engine/job.ts'
import { fixedOffsets } from '../engine/plan.ts'
import { Arena } from './arena.ts'
import type { Layers } from './layers.ts'

/** A distribution that is wanted behind a token of a pass. */
export interface WantedRow {
  readonly token: number
  /** Its id, or how one is drawn. */
  readonly target: number | Draw
  readonly temperature: number
}

/** How an id is drawn. */
export interface Draw {
  /** From 0 to 1. */
  readonly random: number
  readonly topK: number
  readonly topP: number
  readonly minP: number
}

/** An id with its log-probability, and the entropy of its distribution. */
export interface FoundRow {
  readonly id: number
  readonly logprob: number
  readonly entropy: number
  /** What is taken off tempered logits. */
  readonly sum: number
}

/** Bytes of logits that are computed at a time. */
const logitBytes = 64 * 2 ** 20

/** Words of a wanted row, and of a found one. */
const [rowWords, foundWords] = [6, 4]

/** From the residual stream to distributions, and back. */
export class Head {
  readonly #layers: Layers
  readonly #arena: Arena<'gathered' | 'normed' | 'back' | 'places' | 'rows' | 'found' | 'slopes'>
  readonly #logits: GPUBuffer
  /** Rows whose logits are computed at a time. */
  readonly rowsAtOnce: number
  #rows: readonly WantedRow[] = []

  constructor(layers: Layers) {
    this.#layers = layers
    const { card, shape } = layers
    const { width, vocabulary } = shape
    const most = Math.min(logitBytes, card.largest)
    this.rowsAtOnce = Math.max(1, Math.min(512, Math.floor(most / (vocabulary * 4))))
    this.#logits = card.take(this.rowsAtOnce * vocabulary * 4, 'logits')
    this.#arena = new Arena(card, {
      ...{ gathered: width, normed: width, back: width, places: 1 },
      ...{ rows: rowWords, found: foundWords, slopes: 2 },
    })
  }

  /** Log-probabilities and entropies of rows, and ids that are drawn. */
  async forward(rows: readonly WantedRow[], stream: GPUBuffer): Promise<readonly FoundRow[]> {
    const { card } = this.#layers
    const of = this.#arena.for(rows.length)
    this.#rows = rows
    card.write(
      of.places,
      Uint32Array.from(rows, ({ token }) => token),
    )
    card.write(of.rows, describe(rows))
    this.#eachPart((first, count) => {
      this.#logitsOf(stream, first, count)
      const { vocabulary } = this.#layers.shape
      card.run('distribute', [of.rows, this.#logits, of.found], { vocabulary, first }, [count, 1])
    })
    const found = await card.read(of.found, rows.length * foundWords * 4)
    const [words, floats] = [new Uint32Array(found), new Float32Array(found)]
    return rows.map((_, row) => {
      const at = row * foundWords
      return {
        id: words[at]!,
        ...{ logprob: floats[at + 1]!, entropy: floats[at + 2]!, sum: floats[at + 3]! },
      }
    })
  }

  /** The tempered logits of a row of the last pass, which had no more than are computed at a time. */
  async readLogits(row: number): Promise<Float32Array> {
    const { card, shape } = this.#layers
    const bytes = shape.vocabulary * 4
    const copy = card.take(bytes, 'logits')
    card.copy(this.#logits, copy, [row * bytes, 0, bytes])
    const found = await card.read(copy, bytes)
    card.free([copy])
    return new Float32Array(found)
  }

  /** Adds the gradient of the rows that went forward last to the stream's, by log-probabilities and entropies. */
  backward(slopes: Float32Array, [stream, gradient]: readonly [GPUBuffer, GPUBuffer]): void {
    const { card, shape, weights } = this.#layers
    const { width, vocabulary, family } = shape
    const of = this.#arena.for(this.#rows.length)
    card.write(of.slopes, slopes)
    this.#eachPart((first, count) => {
      this.#logitsOf(stream, first, count)
      // Once more, since logits are computed anew: what was found is the same.
      card.run('distribute', [of.rows, this.#logits, of.found], { vocabulary, first }, [count, 1])
      const numbers = { count: count * vocabulary, vocabulary, first }
      card.each('distributeBack', [of.rows, of.found, of.slopes, this.#logits], numbers)
      weights.head.forEach(({ buffer, first: start, rows }, slice) => {
        this.#layers.product({
          sizes: [count, width, rows],
          a: { buffer: this.#logits, start, step: vocabulary, inner: 1 },
          b: { buffer, step: 1, inner: width, halves: weights.halves },
          c: { buffer: of.normed, row: width },
          beta: slice === 0 ? 0 : 1,
        })
      })
      const normed = { width, weight: this.#normAt, epsilon: family!.epsilon, beta: 0 }
      const arrays = [of.gathered, weights.fixed, of.normed, of.back]
      card.run('normBack', arrays, normed, [count, 1])
      const spread = { count: count * width, width, first, rows: count }
      card.each('spread', [of.places, of.back, gradient], spread)
    })
  }

  get #normAt(): number {
    return fixedOffsets(this.#layers.shape).finalNorm
  }

  /** Parts of the rows that fit. */
  #eachPart(visit: (first: number, count: number) => void): void {
    for (let first = 0; first < this.#rows.length; ) {
      const count = Math.min(this.rowsAtOnce, this.#rows.length - first)
      visit(first, count)
      first += count
    }
  }

  #logitsOf(stream: GPUBuffer, first: number, count: number): void {
    const { card, shape, weights } = this.#layers
    const { width, vocabulary } = shape
    const of = this.#arena.for(this.#rows.length)
    const numbers = { count: count * width, width, first }
    card.each('gather', [of.places, stream, of.gathered], numbers)
    this.#layers.norm([count, 1], [of.gathered, of.normed], { width, weight: this.#normAt })
    for (const { buffer, first: start, rows } of weights.head) {
      this.#layers.product({
        sizes: [count, rows, width],
        a: { buffer: of.normed, step: width, inner: 1 },
        b: { buffer, step: width, inner: 1, halves: weights.halves },
        c: { buffer: this.#logits, start, row: vocabulary },
      })
    }
  }
}

/** Rows as kernels read them. */
function describe(rows: readonly WantedRow[]): Uint32Array {
  const words = new Uint32Array(rows.length * rowWords)
  const floats = new Float32Array(words.buffer)
  rows.forEach(({ target, temperature }, row) => {
    const at = row * rowWords
    const drawn = typeof target === 'number' ? undefined : target
    words[at] = typeof target === 'number' ? target : -1
    floats[at + 1] = inverseTemperature(temperature)
    floats[at + 2] = drawn && temperature !== 0 ? drawn.random : -1
    words[at + 3] = drawn?.topK ?? 0
    floats[at + 4] = drawn?.topP ?? 1
    floats[at + 5] = drawn?.minP ?? 0
  })
  return words
}
