import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type EmbeddedModel, type Kernel, openModel } from '../model.ts'

const fixtures = fileURLToPath(new URL('../../../../test/fixtures/pretrained/', import.meta.url))
const families = readdirSync(fixtures).filter(name => !name.includes('.'))
const call = { signal: new AbortController().signal }

/** What transformers and PEFT computed in float32: `python test/fixtures/pretrained/make.py`. */
interface Answers {
  readonly rows: readonly {
    readonly ids: readonly number[]
    readonly logprobs: readonly number[]
  }[]
  readonly adapter: {
    readonly rank: number
    readonly alpha: number
    readonly loss: number
    /** Per factor: the norm of its gradient, and its product with cosines. */
    readonly gradients: Readonly<Record<string, readonly [number, number]>>
  }
}

function answersOf(family: string): Answers {
  return JSON.parse(readFileSync(`${fixtures}${family}/answers.json`, 'utf8')) as Answers
}

function open(family: string, kernel: Kernel): Promise<EmbeddedModel> {
  return openModel({ folder: `${fixtures}${family}` }, { threads: 2, kernel })
}

describe.each(families)('%s', family => {
  it.each(['plain', 'relaxed-fma'] as const)('scores as transformers does: %s', async kernel => {
    await using model = await open(family, kernel)
    for (const { ids, logprobs } of answersOf(family).rows) {
      const found = await model.score(Int32Array.from(ids), 1, { temperature: 1 }, call)
      found.logprobs.forEach((logprob, at) => {
        expect(Math.abs(logprob - logprobs[at]!)).toBeLessThan(2e-5)
      })
    }
  })

  it('samples with the log-probabilities that it scores with', async () => {
    await using model = await open(family, 'relaxed-fma')
    const prompt = Int32Array.from(answersOf(family).rows[0]!.ids.slice(0, 25))
    const drawn = await model.sample(
      { prompt, maxTokens: 30, temperature: 1, stop: [], seed: 1 },
      call,
    )
    const ids = Int32Array.from([...prompt, ...drawn.ids])
    const { logprobs } = await model.score(ids, prompt.length, { temperature: 1 }, call)
    expect(drawn.logprobs).toEqual(logprobs)
  })
})
