import {
  type Policy,
  plainSampling,
  type Sample,
  type SampleRequest,
  type Sampling,
  type TokenSample,
} from '../../src/base/core/policy.ts'
import { mean } from '../../src/base/math/statistics.ts'
import type { BasisEvidence } from '../../src/engine/policies/basis-evidence.ts'
import { findLogprobs } from '../../src/engine/policies/trial.ts'
import type { Torch } from './torch.ts'

/** The findings about a server. */
export interface Report {
  readonly kind: string
  readonly samples: number
  readonly failed: readonly string[]
  readonly tokens: number
  /** Tokens for which the server gave no log-probability. */
  readonly unnumbered: number
  /** How far it is from its own scores, at temperature 1. */
  readonly byServer: Apart | undefined
  /** How far it is from PyTorch, by way of sampling. */
  readonly byTorch: Readonly<Record<string, Apart>>
  /** The largest of the means. */
  readonly apart: number
  /** The basis recorded for its log-probabilities at another temperature than 1. */
  readonly basis: string
  /** What says so. */
  readonly evidence?: BasisEvidence | undefined
  readonly repeatsSeeds: boolean
}

/** How far log-probabilities are from those computed again. */
export interface Apart {
  readonly mean: number
  readonly most: number
}

export interface TryOptions {
  readonly kind: string
  readonly samples: number
  readonly encode: (text: string) => Int32Array
  readonly torch: Torch | undefined
}

/** The prompts that servers continue. */
export const samplePrompts = [
  'Say something about goats: 🐐',
  'The capital of France is',
  '2 + 2 =',
  '大きな',
]
/** The ways of sampling that are tried. */
export const ways: Readonly<Record<string, Sampling>> = {
  'T=1': plainSampling,
  'T=0.7': { ...plainSampling, temperature: 0.7 },
  'T=0.7, top-p 0.9, top-k 50': { temperature: 0.7, topP: 0.9, topK: 50, minP: 0 },
}
const length = 32

/** Samples in each way, scores every token again, and draws one seed twice. */
export async function tryServer(policy: Policy, options: TryOptions): Promise<Report> {
  const { kind, samples, encode, torch } = options
  const prompts = samplePrompts.map(encode)
  const evidence = await findLogprobs(policy, prompts, within()).catch(() => undefined)
  if (evidence && evidence.verdict !== 'undecided') policy.takeLogprobs?.(evidence.verdict)
  const failed: string[] = []
  const byTorch: Record<string, Apart> = {}
  const byServer: number[] = []
  let tokens = 0
  let unnumbered = 0
  let basis = '-'
  for (const [name, sampling] of Object.entries(ways)) {
    const apart: number[] = []
    for (let seed = 0; seed < samples; seed++) {
      const prompt = prompts[seed % prompts.length]!
      try {
        const { segment } = await draw(policy, { prompt, sampling, seed })
        const ids = [...prompt, ...segment.ids]
        const numbers = [...(segment.logprobs ?? [])]
        tokens += segment.ids.length
        unnumbered += segment.ids.length - numbers.filter(value => !Number.isNaN(value)).length
        if (sampling.temperature !== 1) basis = segment.basis
        const scored = name === 'T=1' ? await scoreBy(policy, ids, prompt.length) : undefined
        if (scored) byServer.push(...distances(scored, numbers))
        // What was cut away is not known here, so renormalised numbers cannot be computed again.
        if (segment.basis === 'renormalised') continue
        const heat = segment.basis === 'raw' ? 1 : sampling.temperature
        const truth = await torch?.score(ids, prompt.length, heat)
        if (truth) apart.push(...distances(truth, numbers))
      } catch (error) {
        failed.push(`seed ${seed}, ${name}: ${(error as Error).message.slice(0, 200)}`)
      }
    }
    if (apart.length > 0) byTorch[name] = apartOf(apart)
  }
  const told = byServer.length > 0 ? apartOf(byServer) : undefined
  const apart = Math.max(0, ...[told, ...Object.values(byTorch)].map(each => each?.mean ?? 0))
  const repeatsSeeds = await repeats(policy, prompts[0]!)
  const found = { byServer: told, byTorch, apart, basis, evidence, repeatsSeeds }
  return { kind, samples: samples * Object.keys(ways).length, failed, tokens, unnumbered, ...found }
}

function apartOf(distances: readonly number[]): Apart {
  return { mean: mean(distances), most: Math.max(...distances) }
}

async function scoreBy(
  policy: Policy,
  ids: readonly number[],
  from: number,
): Promise<ArrayLike<number> | undefined> {
  if (!policy.score) return undefined
  const scores = await policy.score(Int32Array.from(ids), from, { temperature: 1 }, within())
  return scores.logprobs
}

async function repeats(policy: Policy, prompt: Int32Array): Promise<boolean> {
  const one = await draw(policy, { prompt, sampling: plainSampling, seed: 11 })
  const two = await draw(policy, { prompt, sampling: plainSampling, seed: 11 })
  return one.segment.ids.join() === two.segment.ids.join()
}

/** How long one sample may take. */
export const within = () => ({ signal: AbortSignal.timeout(600_000) })

/** One short sample of a server. */
export async function ask(
  policy: Policy,
  prompt: SampleRequest['prompt'],
  { sampling, seed }: { readonly sampling: Sampling; readonly seed: number },
): Promise<Sample> {
  return await policy.sample(
    {
      prompt,
      maxTokens: length,
      sampling,
      stopIds: [],
      stopStrings: [],
      seed,
      key: { task: 'servers', member: seed, branch: '', turn: 0 },
      session: String(seed),
    },
    within(),
  )
}

/** The same from token ids, as token ids. */
export async function draw(
  policy: Policy,
  how: { readonly prompt: Int32Array; readonly sampling: Sampling; readonly seed: number },
): Promise<TokenSample> {
  const { prompt, ...drawn } = how
  const sample = await ask(policy, { ids: prompt, messages: [], tools: [] }, drawn)
  if (sample.kind === 'tokens') return sample
  throw new Error(`${policy.name} gives no token ids`)
}

/** The differences of two lists of numbers; missing numbers are left out. */
export function distances(truth: ArrayLike<number>, numbers: readonly number[]): readonly number[] {
  return numbers
    .map((value, at) => Math.abs(value - truth[at]!))
    .filter(apart => !Number.isNaN(apart))
}
