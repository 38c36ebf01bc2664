import { checkBatch, type TokenBatch, type TokenNumbers } from './batch.ts'
import type { LossResult, PolicyTokens } from './loss.ts'
import type { NamedOptions, PolicyLoss } from './registry.ts'

/**
 * Trajectories over the tokens of rows. Rows hold each sampled token once, so that a model goes
 * forward over it once; a path names, one after the other, the tokens that one trajectory passes
 * through, shared ones included. A path is a row of this batch: its entries are all trained, and the
 * advantages are the trajectory's own.
 */
export interface TokenPaths extends TokenBatch {
  /** Per entry: the token of the rows that it is. */
  readonly tokens: Int32Array
  /** Per entry: what the token is worth to this trajectory. */
  readonly advantages: Float64Array
  /** Per entry: importance weights, as a loss takes them. Absent: 1. */
  readonly importance?: TokenNumbers
}

/** What is known of the tokens of rows, one number per token; only tokens that paths name are read. */
export type RowNumbers = Pick<
  PolicyTokens,
  'logprobs' | 'oldLogprobs' | 'refLogprobs' | 'entropies'
>

/** Gathers the numbers of row tokens into the paths that pass through them, as a loss reads them. */
export function pathTokens(paths: TokenPaths, numbers: RowNumbers): PolicyTokens {
  checkBatch(paths)
  checkTokens(paths, numbers.logprobs.length)
  const { tokens, ...batch } = paths
  const gathered = Object.entries(numbers).flatMap(([name, values]) =>
    values === undefined ? [] : [[name, gather(tokens, values)]],
  )
  return { ...batch, ...(Object.fromEntries(gathered) as RowNumbers) }
}

function gather(tokens: Int32Array, values: TokenNumbers): Float64Array {
  return Float64Array.from(tokens, token => values[token]!)
}

/** Sums what paths say of their entries onto the tokens of the rows, `size` of them. */
export function scatterPaths(
  { tokens }: Pick<TokenPaths, 'tokens'>,
  values: TokenNumbers,
  size: number,
): Float64Array {
  const sums = new Float64Array(size)
  for (let entry = 0; entry < tokens.length; entry++) sums[tokens[entry]!]! += values[entry]!
  return sums
}

/**
 * A loss over trajectories, with its gradient on the tokens of rows: log-probabilities are gathered
 * into every trajectory's path, the loss is that of the paths, each with its own advantages and
 * weight, and its gradients are summed back. Equal, for every loss and every ratio, to training each
 * trajectory's full path as a row of its own; the order of trajectories and rows changes nothing.
 */
export function pathLoss(
  loss: PolicyLoss,
  paths: TokenPaths,
  { options = {}, ...numbers }: RowNumbers & { readonly options?: NamedOptions },
): LossResult {
  const size = numbers.logprobs.length
  const result = loss(pathTokens(paths, numbers), options)
  const { gradient, entropyGradient } = result
  return {
    ...result,
    gradient: scatterPaths(paths, gradient, size),
    ...(entropyGradient && { entropyGradient: scatterPaths(paths, entropyGradient, size) }),
  }
}

function checkTokens({ tokens, mask }: TokenPaths, size: number): void {
  if (tokens.length !== mask.length) {
    throw new RangeError(`Paths have ${mask.length} entries, but ${tokens.length} tokens.`)
  }
  const wrong = tokens.findIndex(token => !(token >= 0 && token < size))
  if (wrong < 0) return
  throw new RangeError(`Entry ${wrong} names token ${tokens[wrong]}, but the rows have ${size}.`)
}
