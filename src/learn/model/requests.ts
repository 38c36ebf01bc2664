import { seedOf } from '../../base/math/random.ts'
import type {
  EmbeddedSampleRequest,
  LossGradient,
  TokenNumbers,
  TrainingRow,
  UpdateOptions,
} from './model.ts'
import type { RowGradients, RowNumbers, RowOrder, SampleOrder, UpdateOrder } from './protocol.ts'
import type { ModelShape } from './shape.ts'

const sampleFields: readonly (keyof EmbeddedSampleRequest)[] = [
  'prompt',
  'maxTokens',
  'temperature',
  'topP',
  'topK',
  'minP',
  'stop',
  'seed',
  'session',
  'topLogprobs',
  'onToken',
]

/** Checks a sample request and states its defaults. */
export function toSampleOrder(request: EmbeddedSampleRequest, shape: ModelShape): SampleOrder {
  refuseUnknown(request, sampleFields, 'sample request')
  const { prompt, seed, onToken, session, maxTokens, temperature, stop } = request
  const { topP = 1, topK = 0, minP = 0, topLogprobs = 0 } = request
  checkPrompt(prompt, shape)
  checkNumber('maxTokens', maxTokens, { least: 1, whole: true })
  checkTemperature(temperature)
  checkNumber('topP', topP, { least: Number.MIN_VALUE, most: 1 })
  checkNumber('topK', topK, { least: 0, whole: true })
  checkNumber('minP', minP, { least: 0, most: 1 })
  checkNumber('topLogprobs', topLogprobs, { least: 0, most: shape.vocabulary, whole: true })
  return {
    // A copy: sending a view would send its whole buffer, and the caller may overwrite it.
    prompt: prompt.slice(),
    maxTokens,
    temperature,
    topP,
    topK: Math.min(topK, shape.vocabulary),
    minP,
    stop,
    seed: typeof seed === 'number' ? seedOf(seed) : seed,
    ...(session === undefined ? {} : { session }),
    topLogprobs,
    stream: onToken !== undefined,
  }
}

/** Checks a row and its mask. */
export function toRowOrder(row: TrainingRow, shape: ModelShape): RowOrder {
  const { ids, mask, temperature } = row
  checkIds(ids, shape)
  if (mask.length !== ids.length) {
    throw new RangeError(`A row of ${ids.length} tokens has a mask of ${mask.length}.`)
  }
  if (mask[0] === 1) throw new RangeError('The first token of a row follows nothing: mask it out.')
  if (!mask.every(value => value < 2)) throw new RangeError('A mask has only 0 and 1.')
  checkTemperature(temperature)
  return { ids: ids.slice(), mask: mask.slice(), temperature }
}

/** The row that scores ids from `from` on. */
export function toScoredRow(
  ids: Int32Array,
  { from, temperature }: { from: number; temperature: number },
  shape: ModelShape,
): RowOrder {
  checkNumber('from', from, { least: 1, most: ids.length, whole: true })
  const mask = new Uint8Array(ids.length).fill(1, from)
  return toRowOrder({ ids, mask, temperature }, shape)
}

const updateFields: readonly (keyof UpdateOptions)[] = [
  'learningRate',
  'clip',
  'weightDecay',
  'betas',
  'epsilon',
  'warmup',
]

/** Checks the numbers of an update and states their defaults. */
export function toUpdateOrder(options: UpdateOptions): UpdateOrder {
  refuseUnknown(options, updateFields, 'update')
  const { learningRate, clip } = options
  const { weightDecay = 0, betas = [0.9, 0.95], epsilon = 1e-8, warmup = 1 } = options
  const [beta1, beta2] = betas
  checkNumber('learningRate', learningRate, { least: 0 })
  checkNumber('clip', clip, { least: Number.MIN_VALUE, infinite: true })
  checkNumber('weightDecay', weightDecay, { least: 0 })
  checkNumber('betas[0]', beta1, { least: 0, most: 1 - Number.EPSILON })
  checkNumber('betas[1]', beta2, { least: 0, most: 1 - Number.EPSILON })
  checkNumber('epsilon', epsilon, { least: 0 })
  checkNumber('warmup', warmup, { least: 1 })
  return { learningRate, clip, weightDecay, beta1, beta2, epsilon, warmup }
}

/** Spreads the numbers of wanted tokens over all tokens of the rows. */
export function toTokenNumbers(rows: readonly TrainingRow[], numbers: RowNumbers): TokenNumbers {
  const offsets = new Int32Array(rows.length + 1)
  rows.forEach(({ ids }, row) => {
    offsets[row + 1] = offsets[row]! + ids.length
  })
  const length = offsets.at(-1)!
  const mask = new Uint8Array(length)
  rows.forEach((row, index) => {
    mask.set(row.mask, offsets[index])
  })
  const logprobs = new Float64Array(length)
  const entropies = new Float64Array(length)
  let index = 0
  mask.forEach((wanted, token) => {
    if (wanted === 0) return
    logprobs[token] = numbers.logprobs[index]!
    entropies[token] = numbers.entropies[index++]!
  })
  return { offsets, mask, logprobs, entropies, computed: numbers.computed }
}

/** Gathers the gradient of wanted tokens out of that of all tokens. */
export function toRowGradients(gradient: LossGradient, mask: Uint8Array): RowGradients {
  const { logprobGradient, entropyGradient } = gradient
  return {
    logprobs: gather('logprobGradient', logprobGradient, mask),
    entropies: gather('entropyGradient', entropyGradient ?? new Float64Array(mask.length), mask),
  }
}

function gather(name: string, values: Float64Array, mask: Uint8Array): Float32Array {
  if (values.length !== mask.length) {
    throw new RangeError(`${name} has ${values.length} numbers for ${mask.length} tokens.`)
  }
  const gathered = Float32Array.from(values.filter((_, token) => mask[token] === 1))
  const wrong = gathered.findIndex(value => !Number.isFinite(value))
  if (wrong >= 0) {
    throw new RangeError(`${name} is ${gathered[wrong]} at trained token ${wrong}.`)
  }
  return gathered
}

function checkPrompt(prompt: Int32Array, shape: ModelShape): void {
  if (prompt.length >= shape.context) {
    throw new RangeError(
      `A prompt of ${prompt.length} tokens leaves no room in the model's context of ${shape.context}.`,
    )
  }
  checkIds(prompt, shape)
}

function checkIds(ids: Int32Array, { vocabulary, context }: ModelShape): void {
  if (!(ids instanceof Int32Array)) throw new TypeError('Token ids come as an Int32Array.')
  if (ids.length === 0 || ids.length > context) {
    throw new RangeError(
      `${ids.length} tokens do not fit: the model's context is 1 to ${context} tokens.`,
    )
  }
  const wrong = ids.findIndex(id => id < 0 || id >= vocabulary)
  if (wrong >= 0) {
    throw new RangeError(
      `Token ${ids[wrong]} at place ${wrong} is not in the vocabulary of ${vocabulary}.`,
    )
  }
}

function checkTemperature(temperature: number): void {
  if (temperature !== 0) checkNumber('temperature', temperature, { least: 1e-3, most: 1e3 })
}

function checkNumber(name: string, value: number, range: NumberRange): void {
  const { least, most = Number.POSITIVE_INFINITY, whole = false, infinite = false } = range
  const isKind = whole ? Number.isSafeInteger(value) : infinite || Number.isFinite(value)
  if (isKind && value >= least && value <= most) return
  const kind = whole ? 'a whole number' : 'a number'
  throw new RangeError(`${name} must be ${kind} from ${least} to ${most}, got ${value}.`)
}

interface NumberRange {
  readonly least: number
  readonly most?: number
  readonly whole?: boolean
  readonly infinite?: boolean
}

function refuseUnknown(value: object, known: readonly string[], what: string): void {
  const unknown = Object.keys(value).find(key => !known.includes(key))
  if (unknown === undefined) return
  throw new Error(`A ${what} has no "${unknown}". Known: ${known.join(', ')}.`)
}
