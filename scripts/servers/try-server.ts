import {
  type Policy,
  plainSampling,
  type Sample,
  type SampleRequest,
  type TokenSample,
} from '../../src/base/core/policy.ts'
import type { Torch } from './torch.ts'

/** The findings about a server. */
export interface Report {
  readonly kind: string
  readonly samples: number
  readonly failed: readonly string[]
  readonly tokens: number
  /** Tokens for which the server gave no log-probability. */
  readonly unnumbered: number
  /** The largest difference to the server's own scores, at temperature 1. */
  readonly byServer: number | undefined
  /** The largest difference to PyTorch, by temperature. */
  readonly byTorch: Readonly<Record<string, number>>
  /** The largest of all these. */
  readonly apart: number
  /** The basis recorded for its log-probabilities at another temperature than 1. */
  readonly basis: string
  readonly repeatsSeeds: boolean
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
export const temperatures = [1, 0.7]
const length = 32

/** Samples at two temperatures, scores every token again, and draws one seed twice. */
export async function tryServer(policy: Policy, options: TryOptions): Promise<Report> {
  const { kind, samples, encode, torch } = options
  const prompts = samplePrompts.map(encode)
  const failed: string[] = []
  const byTorch: Record<string, number> = {}
  let byServer: number | undefined
  let tokens = 0
  let unnumbered = 0
  let basis = '-'
  for (const temperature of temperatures) {
    for (let seed = 0; seed < samples; seed++) {
      const prompt = prompts[seed % prompts.length]!
      try {
        const { segment } = await draw(policy, { prompt, temperature, seed })
        const ids = [...prompt, ...segment.ids]
        const numbers = [...(segment.logprobs ?? [])]
        tokens += segment.ids.length
        unnumbered += segment.ids.length - numbers.filter(value => !Number.isNaN(value)).length
        if (temperature !== 1) basis = segment.basis
        const scored = temperature === 1 ? await scoreBy(policy, ids, prompt.length) : undefined
        if (scored) byServer = Math.max(byServer ?? 0, furthest(scored, numbers))
        const heat = segment.basis === 'raw' ? 1 : temperature
        const truth = await torch?.score(ids, prompt.length, heat)
        const name = String(temperature)
        if (truth) byTorch[name] = Math.max(byTorch[name] ?? 0, furthest(truth, numbers))
      } catch (error) {
        failed.push(`seed ${seed}, T=${temperature}: ${(error as Error).message.slice(0, 200)}`)
      }
    }
  }
  const apart = Math.max(0, byServer ?? 0, ...Object.values(byTorch))
  const found = {
    byServer,
    byTorch,
    apart,
    basis,
    repeatsSeeds: await repeats(policy, prompts[0]!),
  }
  return { kind, samples: samples * temperatures.length, failed, tokens, unnumbered, ...found }
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
  const one = await draw(policy, { prompt, temperature: 1, seed: 11 })
  const two = await draw(policy, { prompt, temperature: 1, seed: 11 })
  return one.segment.ids.join() === two.segment.ids.join()
}

/** How long one sample may take. */
export const within = () => ({ signal: AbortSignal.timeout(600_000) })

/** One short sample of a server. */
export async function ask(
  policy: Policy,
  prompt: SampleRequest['prompt'],
  { temperature, seed }: { readonly temperature: number; readonly seed: number },
): Promise<Sample> {
  return await policy.sample(
    {
      prompt,
      maxTokens: length,
      sampling: { ...plainSampling, temperature },
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
  how: { readonly prompt: Int32Array; readonly temperature: number; readonly seed: number },
): Promise<TokenSample> {
  const { prompt, ...drawn } = how
  const sample = await ask(policy, { ids: prompt, messages: [], tools: [] }, drawn)
  if (sample.kind === 'tokens') return sample
  throw new Error(`${policy.name} gives no token ids`)
}

/** The largest difference between two lists of numbers; missing numbers are ignored. */
export function furthest(truth: ArrayLike<number>, numbers: readonly number[]): number {
  return numbers.reduce((most, value, at) => {
    const apart = Math.abs(value - truth[at]!)
    return apart > most ? apart : most
  }, 0)
}
