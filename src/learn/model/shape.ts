/** A dense transformer as Llama has it: its sizes, and what else sets its family apart. */
export interface ModelShape {
  /** How many token ids there are. */
  readonly vocabulary: number
  /** Numbers per token in the residual stream. */
  readonly width: number
  readonly layers: number
  readonly heads: number
  /** Numbers per token inside the gated unit. */
  readonly hidden: number
  /** The most tokens of a sequence, prompt and answer together. */
  readonly context: number
  /** What a pretrained model has; one that is trained from nothing has none of it. */
  readonly family?: Family
}

/** What sets a pretrained family of transformers apart. */
export interface Family {
  /** Heads of keys and values; each serves as many heads of queries. */
  readonly keyHeads: number
  readonly headSize: number
  /** What the norms add under the root. */
  readonly epsilon: number
  readonly rope: Rope
  readonly biases: {
    readonly queries: boolean
    readonly keysAndValues: boolean
    readonly output: boolean
    readonly unit: boolean
  }
  /** Whether the heads of queries and keys are normed one by one. */
  readonly headNorms: boolean
  /** Whether the head's weights are the embedding's. */
  readonly isTied: boolean
  /** Per layer: how many tokens a query sees, itself included; 0 if all. */
  readonly windows: readonly number[]
  readonly activation: 'silu' | 'gelu-tanh'
  /** What embeddings are multiplied by. */
  readonly embeddingScale: number
  /** Whether norms multiply by one more than their weights. */
  readonly normsAddOne: boolean
}

/** How positions turn queries and keys: per pair of numbers its angle per token, and a factor of cosine and sine. */
export interface Rope {
  readonly frequencies: readonly number[]
  readonly factor: number
}

type Size = 'vocabulary' | 'width' | 'layers' | 'heads' | 'hidden' | 'context'

const limits: Readonly<Record<Size, number>> = {
  vocabulary: 2 ** 19,
  width: 2 ** 14,
  layers: 256,
  heads: 256,
  hidden: 2 ** 16,
  context: 2 ** 17,
}

/** The most numbers of a model that is trained whole. */
const trainedLimit = 16_000_000

/** Refuses a shape that the kernels cannot compute, and says what is possible. */
export function checkShape(shape: ModelShape): ModelShape {
  for (const [name, limit] of Object.entries(limits)) {
    const size = shape[name as Size]
    if (!Number.isSafeInteger(size) || size < 1 || size > limit) {
      throw new RangeError(`A model's ${name} must be a whole number from 1 to ${limit}: ${size}.`)
    }
  }
  const { vocabulary, width, layers, heads, hidden, context, family } = shape
  if (hidden % 8 !== 0) {
    throw new RangeError(`The hidden size must be a multiple of 8, for instance ${up8(hidden)}.`)
  }
  const sizes = { vocabulary, width, layers, heads, hidden, context }
  if (family) return { ...sizes, family: checkFamily(shape, family) }
  if (width % (heads * 8) !== 0) {
    const sizes = `width ${width} and ${heads} heads`
    throw new RangeError(`A head's size, width / heads, must be a multiple of 8; got ${sizes}.`)
  }
  const parameters = countParameters(shape)
  if (parameters > trainedLimit) {
    throw new RangeError(`${parameters} parameters are too many: up to ${trainedLimit} fit.`)
  }
  return sizes
}

function checkFamily({ width, heads, layers }: ModelShape, family: Family): Family {
  const { headSize, keyHeads, rope, windows } = family
  if (width % 8 !== 0) throw new RangeError(`The width must be a multiple of 8, not ${width}.`)
  if (!Number.isSafeInteger(headSize) || headSize < 8 || headSize > 512 || headSize % 8 !== 0) {
    throw new RangeError(`A head's size must be a multiple of 8 up to 512, not ${headSize}.`)
  }
  if (!Number.isSafeInteger(keyHeads) || keyHeads < 1 || heads % keyHeads !== 0) {
    throw new RangeError(`${heads} heads cannot share ${keyHeads} heads of keys and values.`)
  }
  if (rope.frequencies.length !== headSize / 2 || windows.length !== layers) {
    throw new RangeError('A family states a frequency per pair of a head and a window per layer.')
  }
  return family
}

/** Heads of keys and values, and the size of a head. */
export function headsOf({ width, heads, family }: ModelShape): {
  readonly keyHeads: number
  readonly headSize: number
} {
  return family ?? { keyHeads: heads, headSize: width / heads }
}

/** How many numbers the weights of a model of this shape are. */
export function countParameters(shape: ModelShape): number {
  const { vocabulary, width, layers, hidden, heads, family } = shape
  const { keyHeads, headSize } = headsOf(shape)
  const layer = (2 * heads + 2 * keyHeads) * headSize * width + 3 * width * hidden + 2 * width
  const head = family && !family.isTied ? vocabulary * width : 0
  return vocabulary * width + head + layers * layer + width
}

/** The next multiple of eight: as wide as a panel. */
export function up8(size: number): number {
  return Math.ceil(size / 8) * 8
}
