import { textOf } from '@espalier/text'
import {
  type Policy,
  plainSampling,
  type Sample,
  type Sampling,
} from '../../src/base/core/policy.ts'
import { ask, type Report, samplePrompts, type TryOptions, ways } from './try-server.ts'

/**
 * Asks a chat server for messages at two temperatures, and for one seed twice. Tokens can only be
 * checked if it returns their ids.
 */
export async function tryChat(policy: Policy, options: TryOptions): Promise<Report> {
  const { kind, samples, encode } = options
  const failed: string[] = []
  let tokens = 0
  let unnumbered = 0
  const say = (seed: number, sampling: Sampling): Promise<Sample> => {
    const content = samplePrompts[seed % samplePrompts.length]!
    const prompt = {
      ids: encode(content),
      messages: [{ role: 'user', content }],
      tools: [],
    } as const
    return ask(policy, prompt, { seed, sampling })
  }
  for (const [name, sampling] of Object.entries(ways)) {
    for (let seed = 0; seed < samples; seed++) {
      try {
        const sample = await say(seed, sampling)
        tokens += sample.usage.sampled
        if (sample.kind === 'text') unnumbered += sample.usage.sampled
      } catch (error) {
        failed.push(`seed ${seed}, ${name}: ${(error as Error).message.slice(0, 200)}`)
      }
    }
  }
  const first = wordsOf(await say(11, plainSampling))
  const repeatsSeeds = first === wordsOf(await say(11, plainSampling))
  const found = { byServer: undefined, byTorch: {}, apart: 0, basis: '-', repeatsSeeds }
  return { kind, samples: samples * Object.keys(ways).length, failed, tokens, unnumbered, ...found }
}

function wordsOf(sample: Sample): string {
  if (sample.kind === 'tokens') return sample.segment.ids.join()
  const { content, reasoning_content: reasoning = '' } = sample.message
  return `${reasoning} ${textOf(content)}`
}
