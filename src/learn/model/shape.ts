/** The sizes of an embedded transformer; embeddings are tied to the output. */
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
}

const limits: Readonly<Record<keyof ModelShape, number>> = {
  vocabulary: 65_536,
  width: 1024,
  layers: 32,
  heads: 64,
  hidden: 4096,
  context: 32_768,
}

const parameterLimit = 16_000_000

/** Refuses a shape that the kernels cannot compute, and says what is possible. */
export function checkShape(shape: ModelShape): ModelShape {
  for (const [name, limit] of Object.entries(limits)) {
    const size = shape[name as keyof ModelShape]
    if (!Number.isSafeInteger(size) || size < 1 || size > limit) {
      throw new RangeError(`A model's ${name} must be a whole number from 1 to ${limit}: ${size}.`)
    }
  }
  const { width, heads, hidden } = shape
  if (width % (heads * 8) !== 0) {
    const sizes = `width ${width} and ${heads} heads`
    throw new RangeError(`A head's size, width / heads, must be a multiple of 8; got ${sizes}.`)
  }
  if (hidden % 8 !== 0) {
    throw new RangeError(`The hidden size must be a multiple of 8, for instance ${up8(hidden)}.`)
  }
  const parameters = countParameters(shape)
  if (parameters > parameterLimit) {
    throw new RangeError(`${parameters} parameters are too many: up to ${parameterLimit} fit.`)
  }
  const { vocabulary, layers, context } = shape
  return { vocabulary, width, layers, heads, hidden, context }
}

/** How many numbers a model of this shape learns. */
export function countParameters({ vocabulary, width, layers, hidden }: ModelShape): number {
  const layer = 4 * width * width + 3 * width * hidden + 2 * width
  return vocabulary * width + layers * layer + width
}

/** The next multiple of eight: as wide as a panel. */
export function up8(size: number): number {
  return Math.ceil(size / 8) * 8
}
