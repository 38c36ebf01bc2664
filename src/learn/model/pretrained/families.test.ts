import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { openWithAdapter } from '../../../../test/tiny-adapter.ts'
import { adapterMaps } from '../adapter.ts'
import { type EmbeddedModel, type Kernel, openModel, type TrainingRow } from '../model.ts'

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

  it.each([
    ['kept', 2 ** 30],
    ['computed again', 0],
  ])('has the gradients of an adapter that PEFT has, activations %s', async (_, keptBudget) => {
    const { rows, adapter } = answersOf(family)
    const { rank, alpha } = adapter
    using opened = await openWithAdapter(`${fixtures}${family}`, {
      adapter: { rank, alpha, targets: adapterMaps },
      keptBudget,
      factor: factorNumber,
    })
    const { loss, gradients, computed } = opened.gradient(trainingRows(rows), slopesOf)
    // Rows begin alike: those tokens are computed once.
    expect(computed.tokens).toBeLessThan(0.8 * computed.of)
    expect(Math.abs(loss - adapter.loss)).toBeLessThan(1e-4 * Math.abs(adapter.loss) + 1e-4)
    for (const [name, [norm, along]] of Object.entries(adapter.gradients)) {
      const found = gradients.get(name)!
      expect(Math.abs(lengthOf(found) - norm)).toBeLessThan(1e-4 * norm)
      expect(Math.abs(alongCosines(found) - along)).toBeLessThan(1e-4 * norm)
    }
  })
})

/** What the loss of `make.py` asks for: its tokens and their temperatures. */
function trainingRows(rows: Answers['rows']): TrainingRow[] {
  return rows.map(({ ids }, row) => ({
    ids: Int32Array.from(ids),
    mask: Uint8Array.from(ids, (_, at) => Number(at >= 4 && at % 3 !== row % 3)),
    temperature: row === 3 ? 0.7 : 1,
  }))
}

/** The loss's slopes at a token: by its log-probability and by the entropy before it. */
function slopesOf(row: number, at: number): readonly [number, number] {
  return [0.1 * (row - 2) + 0.01 * at, 0.05 * row]
}

/** The number at a place of a factor, as `make.py` makes it. */
function factorNumber(name: string, at: number): number {
  const long = name.replace('.weight', '.default.weight')
  const shift = [...Buffer.from(long)].reduce((sum, byte) => sum + byte, 0) % 17
  return 0.3 * Math.sin(at * 0.7 + shift)
}

function lengthOf(numbers: Float32Array): number {
  return Math.sqrt(numbers.reduce((sum, value) => sum + value * value, 0))
}

function alongCosines(numbers: Float32Array): number {
  return numbers.reduce((sum, value, at) => sum + value * Math.cos(at), 0)
}
