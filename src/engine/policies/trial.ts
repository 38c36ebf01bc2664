import type { Call } from '../../base/core/call.ts'
import type { Policy, SampleRequest, TokenSample } from '../../base/core/policy.ts'
import { plainSampling } from '../../base/core/policy.ts'

/** How a policy behaves, found by drawing tokens from it and scoring them again. */
export interface Trial {
  /** Tokens that were drawn at temperature 1. */
  readonly ids: readonly number[]
  /** The largest difference between a token's log-probability when drawn and when scored. */
  readonly difference: number | undefined
  /** What its log-probabilities are at other temperatures; undefined if that cannot be found out. */
  readonly logprobs: 'raw' | 'processed' | undefined
  /** Whether the same seed draws the same tokens. */
  readonly repeatsSeeds: boolean
}

/** Tokens per draw: enough to tell two seeds apart, few enough to cost nothing. */
const drawn = 16
/** Far from 1, so that raw and processed numbers lie far apart. */
const otherTemperature = 2
/** Log-probabilities of one distribution differ by less, whatever the precision of the server's cache. */
const sameWithin = 0.05

/** Draws a few tokens behind a prompt, at two temperatures and twice with one seed. */
export async function tryPolicy(policy: Policy, prompt: Int32Array, call: Call): Promise<Trial> {
  const first = await draw(policy, prompt, { temperature: 1, seed: 1 }, call)
  const second = await draw(policy, prompt, { temperature: 1, seed: 1 }, call)
  const { ids } = first.segment
  return {
    ids: [...ids],
    difference: await differenceOf(policy, { prompt, sample: first }, call),
    logprobs: await findLogprobs(policy, prompt, call),
    repeatsSeeds: ids.length === second.segment.ids.length && ids.every(isAt(second)),
  }
}

const isAt =
  ({ segment }: TokenSample) =>
  (id: number, index: number): boolean =>
    segment.ids[index] === id

/**
 * Whether a server's numbers are of temperature 1 or of the temperature that it samples with: a
 * token is drawn at another one and scored, which servers do at temperature 1.
 */
export async function findLogprobs(
  policy: Policy,
  prompt: Int32Array,
  call: Call,
): Promise<'raw' | 'processed' | undefined> {
  if (!policy.score || !policy.capabilities.logprobs) return undefined
  const sample = await draw(policy, prompt, { temperature: otherTemperature, seed: 2 }, call)
  const difference = await differenceOf(policy, { prompt, sample }, call)
  if (difference === undefined) return undefined
  return difference < sameWithin ? 'raw' : 'processed'
}

async function draw(
  policy: Policy,
  prompt: Int32Array,
  { temperature, seed }: { readonly temperature: number; readonly seed: number },
  call: Call,
): Promise<TokenSample> {
  const request: SampleRequest = {
    prompt: { ids: prompt, messages: [], tools: [] },
    maxTokens: drawn,
    sampling: { ...plainSampling, temperature },
    stopIds: [],
    stopStrings: [],
    seed,
    key: { task: 'trial', member: 0, branch: '', turn: 0 },
    session: 'trial',
  }
  const sample = await policy.sample(request, call)
  if (sample.kind === 'tokens') return sample
  throw new Error(`${policy.name} gives no token ids`)
}

/** How far apart the numbers of a sample and those of scoring it are; at most, over its tokens. */
async function differenceOf(
  policy: Policy,
  { prompt, sample }: { readonly prompt: Int32Array; readonly sample: TokenSample },
  call: Call,
): Promise<number | undefined> {
  const { ids, logprobs } = sample.segment
  if (!policy.score || !logprobs) return undefined
  const whole = new Int32Array(prompt.length + ids.length)
  whole.set(prompt)
  whole.set(ids, prompt.length)
  const scored = await policy.score(whole, prompt.length, { temperature: 1 }, call)
  let largest = 0
  scored.logprobs.forEach((logprob, index) => {
    const difference = Math.abs(logprob - logprobs[index]!)
    // NaN: the policy gave no number for this token.
    if (difference > largest) largest = difference
  })
  return largest
}
