import { checkExperts, type RoutedExperts } from './experts.ts'
import { checkPlaces, type ImagePlace } from './image.ts'

declare const checked: unique symbol

/**
 * Which distribution a log-probability is of: `tempered` (after temperature, before top-p and
 * top-k), `raw` (temperature 1), `renormalised` (after top-p and top-k, or among what a form allows).
 */
export type LogprobBasis = 'tempered' | 'raw' | 'renormalised'

/**
 * The policy version that sampled a token, or the range it can lie in: a server that updates its
 * weights in mid-sample only tells the version of the moment it answered.
 */
export interface VersionRange {
  readonly from: number
  readonly to: number
}

/** The most probable tokens at each sampled place: `width` candidates per token, row by row. */
export interface TopLogprobs {
  readonly width: number
  readonly ids: Int32Array
  readonly logprobs: Float32Array
}

/** Other policies whose log-probabilities of sampled tokens are kept beside those of the one that sampled them. */
export const scorerNames = ['reference', 'teacher', 'proximal'] as const

/**
 * One of them: the `reference` that a policy is held near to, the `teacher` that it learns from, and `proximal`, the
 * sampling policy itself as it scores its finished tokens.
 */
export type ScorerName = (typeof scorerNames)[number]

/** Log-probabilities of a run of tokens under other policies; NaN if one did not score a token. */
export type OtherLogprobs = Readonly<Partial<Record<ScorerName, Float32Array>>>

/** Which earlier tokens a part of a rewritten path repeats. */
export interface Repeat {
  /** Where in this segment the repetition lies. */
  readonly start: number
  readonly end: number
  /** The node it repeats, and from which of its tokens. */
  readonly node: number
  readonly offset: number
}

/** A run of tokens the policy was given: the rendered opening, or what it observed later. */
export interface GivenSegment {
  readonly origin: 'prompt' | 'observed'
  readonly ids: Int32Array
  /** What a rewrite carried over, never trained here. */
  readonly repeats?: readonly Repeat[]
  /** The images among its tokens, in their order. */
  readonly images?: readonly ImagePlace[]
  readonly logprobs?: never
  readonly version?: never
  readonly others?: never
  readonly experts?: never
}

/** A run of tokens one policy sampled. `logprobs[i]` belongs to `ids[i]`. */
export interface SampledSegment {
  readonly origin: 'sampled'
  readonly ids: Int32Array
  /** `null`: the policy gives none; NaN: it gave none for this token. */
  readonly logprobs: Float32Array | null
  readonly basis: LogprobBasis
  readonly version: VersionRange
  /** Entropy of the distribution each token was drawn from, if the policy tells. */
  readonly entropies?: Float32Array
  readonly top?: TopLogprobs
  /** Log-probabilities of the same tokens under other policies. */
  readonly others?: OtherLogprobs
  /** The experts that served its tokens, and those before it that no sample had reported. */
  readonly experts?: RoutedExperts
  readonly repeats?: never
  readonly images?: never
  readonly [checked]: true
}

/** A maximal run of tokens with one origin. */
export type Segment = GivenSegment | SampledSegment

/** What a sampled segment is made from. */
export interface SampledParts {
  readonly ids: Int32Array
  readonly logprobs: Float32Array | null
  /** @default 'tempered' */
  readonly basis?: LogprobBasis
  readonly version: VersionRange
  readonly entropies?: Float32Array
  readonly top?: TopLogprobs
  readonly others?: OtherLogprobs
  readonly experts?: RoutedExperts
}

/** The only way to make a `SampledSegment`: ids and log-probabilities are paired here, once. */
export function sampled(parts: SampledParts): SampledSegment {
  const { ids, logprobs, entropies, top, version } = parts
  if (logprobs) checkLogprobs(ids, logprobs)
  if (entropies && entropies.length !== ids.length) {
    throw new RangeError(`sampled segment has ${ids.length} ids but ${entropies.length} entropies`)
  }
  if (
    top &&
    (top.ids.length !== ids.length * top.width || top.logprobs.length !== top.ids.length)
  ) {
    throw new RangeError(
      `sampled segment has ${ids.length} ids but ${top.ids.length} top ids of width ${top.width}`,
    )
  }
  if (parts.others) checkOthers(ids, parts.others)
  if (parts.experts) checkExperts(parts.experts, ids.length)
  if (version.from > version.to) {
    throw new RangeError(`policy version range runs backwards: ${version.from} to ${version.to}`)
  }
  return { basis: 'tempered', ...parts, origin: 'sampled' } as SampledSegment
}

function checkOthers(ids: Int32Array, others: OtherLogprobs): void {
  for (const [name, values] of Object.entries(others)) {
    if (values.length === ids.length) continue
    throw new RangeError(`sampled segment has ${ids.length} ids but ${values.length} of ${name}`)
  }
}

function checkLogprobs(ids: Int32Array, logprobs: Float32Array): void {
  if (ids.length !== logprobs.length) {
    throw new RangeError(`sampled segment has ${ids.length} ids but ${logprobs.length} logprobs`)
  }
  let bad = 0
  while (bad < ids.length && isLogprobOrMissing(logprobs[bad]!)) bad++
  if (bad < ids.length) {
    throw new RangeError(
      `logprob ${bad} of ${ids.length} is ${logprobs[bad]}, not a log-probability`,
    )
  }
}

/** NaN stands for a token that the policy gave no number for. */
function isLogprobOrMissing(value: number): boolean {
  return Number.isNaN(value) || isLogprob(value)
}

/** Whether a number can be a log-probability; servers round some to a little more than 0. */
export function isLogprob(value: number): boolean {
  return value <= 1e-3 && value > -Infinity
}

/** A given segment: tokens the policy did not sample. */
export function given(
  origin: 'prompt' | 'observed',
  ids: Int32Array,
  repeats?: readonly Repeat[],
  images: readonly ImagePlace[] = [],
): GivenSegment {
  const segment = repeats && repeats.length > 0 ? { origin, ids, repeats } : { origin, ids }
  if (images.length === 0) return segment
  checkPlaces(images, ids.length)
  return { ...segment, images }
}

/** Whether a policy sampled these tokens. */
export function isSampled(segment: Segment): segment is SampledSegment {
  return segment.origin === 'sampled'
}
