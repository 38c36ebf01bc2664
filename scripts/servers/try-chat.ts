import { textOf } from '../../src/core/message.ts'
import { type Policy, plainSampling, type Sample } from '../../src/core/policy.ts'
import { type Report, samplePrompts, type TryOptions, temperatures, within } from './try-server.ts'

/**
 * Asks a server that only chats for messages at two temperatures, and for one seed twice. Of tokens
 * nothing can be known unless it tells their ids.
 */
export async function tryChat(policy: Policy, options: TryOptions): Promise<Report> {
  const { kind, samples, encode } = options
  const failed: string[] = []
  let tokens = 0
  let unnumbered = 0
  const say = (seed: number, temperature: number): Promise<Sample> =>
    draw(policy, { text: samplePrompts[seed % samplePrompts.length]!, encode, seed, temperature })
  for (const temperature of temperatures) {
    for (let seed = 0; seed < samples; seed++) {
      try {
        const sample = await say(seed, temperature)
        tokens += sample.usage.sampled
        if (sample.kind === 'text') unnumbered += sample.usage.sampled
      } catch (error) {
        failed.push(`seed ${seed}, T=${temperature}: ${(error as Error).message.slice(0, 200)}`)
      }
    }
  }
  const first = wordsOf(await say(11, 1))
  const repeatsSeeds = first === wordsOf(await say(11, 1))
  const found = { byServer: undefined, byTorch: {}, apart: 0, basis: '-', repeatsSeeds }
  return { kind, samples: samples * temperatures.length, failed, tokens, unnumbered, ...found }
}

function wordsOf(sample: Sample): string {
  if (sample.kind === 'tokens') return sample.segment.ids.join()
  const { content, reasoning_content: reasoning = '' } = sample.message
  return `${reasoning} ${textOf(content)}`
}

async function draw(
  policy: Policy,
  how: {
    readonly text: string
    readonly encode: TryOptions['encode']
    readonly seed: number
    readonly temperature: number
  },
): Promise<Sample> {
  const { text, encode, seed, temperature } = how
  return await policy.sample(
    {
      prompt: { ids: encode(text), messages: [{ role: 'user', content: text }], tools: [] },
      maxTokens: 32,
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
