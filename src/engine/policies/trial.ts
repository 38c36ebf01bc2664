import type { Call } from '../../base/core/call.ts'
import type { Policy, SampleRequest, TokenSample } from '../../base/core/policy.ts'
import { plainSampling } from '../../base/core/policy.ts'
import { mean } from '../../base/math/statistics.ts'
import {
  type BasisEvidence,
  type Compared,
  compareDrawn,
  type LogprobKind,
  weighBasis,
} from './basis-evidence.ts'

/** How a policy behaves, found by drawing tokens from it and scoring them again. */
export interface Trial {
  /** Tokens that were drawn at temperature 1. */
  readonly ids: readonly number[]
  /** The largest difference between a token's log-probability when drawn and when scored, at temperature 1. */
  readonly difference: number | undefined
  /** The mean of these differences. */
  readonly meanDifference: number | undefined
  /** How far the numbers of tokens that were drawn alone and again beside others are apart at most: a warm cache, a quantised one or another batch may change them. */
  readonly warmDifference: number | undefined
  /** What its log-probabilities are at other temperatures; undefined if that cannot be found out. */
  readonly logprobs: LogprobKind | undefined
  /** What says so. */
  readonly evidence: BasisEvidence | undefined
  /** Whether the same seed draws the same tokens, for each of several seeds and prompts. */
  readonly repeatsSeeds: boolean
}

/** Tokens per draw: enough to tell two seeds apart, few enough to cost nothing. */
const drawn = 16
/** Far from 1, so that raw and processed numbers lie far apart. */
export const otherTemperature = 2
/** Candidates per token; servers list up to 19 beside the token itself. */
export const mostCandidates = 19
/** One for each draw of a prompt. */
const seeds = [1, 2]

/** Draws a few tokens behind each prompt, at two temperatures and twice with each seed. */
export async function tryPolicy(
  policy: Policy,
  prompts: readonly Int32Array[],
  call: Call,
): Promise<Trial> {
  const draws = drawsOf(prompts, { temperature: 1, candidates: 0, tokens: drawn })
  // One by one and then together: what a server computes at the same time may change its numbers.
  const first: TokenSample[] = []
  for (const each of draws) first.push(await draw(policy, each, call))
  const second = await drawAll(policy, draws, call)
  const noise = await compareAll(policy, { draws, samples: first }, call)
  const evidence = await findLogprobs(policy, prompts, call)
  const differences = noise?.map(({ raw }) => raw)
  return {
    ids: first.flatMap(({ segment }) => [...segment.ids]),
    difference: differences && Math.max(0, ...differences),
    meanDifference: differences && mean(differences),
    warmDifference: warmDifference(first, second),
    logprobs:
      evidence === undefined || evidence.verdict === 'undecided' ? undefined : evidence.verdict,
    evidence,
    repeatsSeeds: first.every((sample, at) => isSame(sample, second[at]!)),
  }
}

function isSame({ segment: one }: TokenSample, { segment: other }: TokenSample): boolean {
  return one.ids.length === other.ids.length && one.ids.every((id, at) => id === other.ids[at])
}

/** Over the tokens that both draws begin with. */
function warmDifference(
  first: readonly TokenSample[],
  second: readonly TokenSample[],
): number | undefined {
  const apart: number[] = []
  for (const [at, { segment: one }] of first.entries()) {
    const { segment: other } = second[at]!
    for (let index = 0; one.ids[index] !== undefined; index++) {
      if (one.ids[index] !== other.ids[index]) break
      const difference = Math.abs((one.logprobs?.[index] ?? NaN) - (other.logprobs?.[index] ?? NaN))
      if (!Number.isNaN(difference)) apart.push(difference)
    }
  }
  return apart.length === 0 ? undefined : Math.max(...apart)
}

/**
 * Whether a server's numbers are of temperature 1 or of the temperature that it samples with: tokens are
 * drawn at another one and scored, which servers do at temperature 1, and both hypotheses are held against
 * the same draws. Undefined if the policy cannot score.
 */
export async function findLogprobs(
  policy: Policy,
  prompts: readonly Int32Array[],
  call: Call,
): Promise<BasisEvidence | undefined> {
  if (!policy.score || !policy.capabilities.logprobs) return undefined
  const candidates = Math.min(mostCandidates, policy.capabilities.topLogprobs)
  const calm = drawsOf(prompts, { temperature: 1, candidates: 0, tokens: drawn })
  const hot = drawsOf(prompts, { temperature: otherTemperature, candidates, tokens: drawn })
  const noise = await compareAll(
    policy,
    { draws: calm, samples: await drawAll(policy, calm, call) },
    call,
  )
  const compared = await compareAll(
    policy,
    { draws: hot, samples: await drawAll(policy, hot, call) },
    call,
  )
  return weighBasis(compared ?? [], mean((noise ?? []).map(({ raw }) => raw)))
}

/** Draws a few tokens behind the prompt of a request and holds each against its score; tells who answered. */
export async function compareDraw(
  policy: Policy,
  { request, how }: { readonly request: SampleRequest; readonly how: Omit<Draw, 'prompt'> },
  call: Call,
): Promise<{ readonly server: string | undefined; readonly compared: readonly Compared[] }> {
  const { session } = request
  const drawing = { ...how, prompt: request.prompt.ids.slice(), session }
  const sample = await draw(policy, drawing, call)
  const compared = await compareAll(policy, { draws: [drawing], samples: [sample] }, call)
  return { server: sample.usage.server, compared: compared ?? [] }
}

/** One draw of a trial. */
interface Draw {
  readonly prompt: Int32Array
  readonly seed: number
  readonly temperature: number
  readonly candidates: number
  readonly tokens: number
  /** @default that of all trials */
  readonly session?: string
}

function drawsOf(
  prompts: readonly Int32Array[],
  how: Pick<Draw, 'temperature' | 'candidates' | 'tokens'>,
): readonly Draw[] {
  return prompts.flatMap(prompt => seeds.map(seed => ({ prompt, seed, ...how })))
}

function drawAll(
  policy: Policy,
  draws: readonly Draw[],
  call: Call,
): Promise<readonly TokenSample[]> {
  return Promise.all(draws.map(each => draw(policy, each, call)))
}

async function draw(
  policy: Policy,
  { prompt, temperature, seed, candidates, tokens, session = 'trial' }: Draw,
  call: Call,
): Promise<TokenSample> {
  const request: SampleRequest = {
    prompt: { ids: prompt, messages: [], tools: [] },
    maxTokens: tokens,
    sampling: { ...plainSampling, temperature },
    stopIds: [],
    stopStrings: [],
    seed,
    key: { task: 'trial', member: 0, branch: '', turn: 0 },
    session,
    ...(candidates > 0 && { topLogprobs: candidates }),
  }
  const sample = await policy.sample(request, call)
  if (sample.kind === 'tokens') return sample
  throw new Error(`${policy.name} gives no token ids`)
}

/** Every token of the samples beside its score; undefined if the policy cannot score. */
async function compareAll(
  policy: Policy,
  { draws, samples }: { readonly draws: readonly Draw[]; readonly samples: readonly TokenSample[] },
  call: Call,
): Promise<readonly Compared[] | undefined> {
  if (!policy.score) return undefined
  const compared = await Promise.all(
    samples.map(async (sample, at) => {
      const { prompt, temperature, session = 'trial' } = draws[at]!
      const { ids } = sample.segment
      if (ids.length === 0) return []
      const whole = new Int32Array(prompt.length + ids.length)
      whole.set(prompt)
      whole.set(ids, prompt.length)
      const scored = await policy.score!(whole, prompt.length, { temperature: 1, session }, call)
      return compareDrawn(sample, scored.logprobs, temperature)
    }),
  )
  return compared.flat()
}
