import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTaught, prompt } from '../../../test/fixtures/small-model.ts'
import { lossNamed, lossNames } from '../../base/math/registry.ts'
import { type Lesson, learn, scoreRow } from './learn.ts'
import type { EmbeddedModel } from './model.ts'

const { signal } = new AbortController()
let model: EmbeddedModel
beforeAll(async () => {
  model = await openTaught(1)
})
afterAll(() => model[Symbol.asyncDispose]())

/** Chains of ten trained tokens, each with one advantage. */
async function lessonOf(advantages: readonly number[]): Promise<Lesson> {
  const rows = await Promise.all(
    advantages.map(async (_, tree) => {
      const ids = prompt(14, tree)
      const mask = Uint8Array.from(ids, (_, token) => Number(token >= 4))
      const row = { ids, mask, temperature: 1, tree, logprobs: new Float32Array(14), origins: [] }
      return { ...row, logprobs: (await scoreRow(model, row, signal)).logprobs }
    }),
  )
  const size = 10 * advantages.length
  return {
    rows,
    trees: Int32Array.from(advantages, (_, tree) => tree),
    paths: {
      offsets: Int32Array.from({ length: advantages.length + 1 }, (_, path) => path * 10),
      trajectory: Int32Array.from(advantages, (_, path) => path),
      mask: new Uint8Array(size).fill(1),
      tokens: Int32Array.from(
        { length: size },
        (_, at) => Math.floor(at / 10) * 14 + 4 + (at % 10),
      ),
      advantages: Float64Array.from({ length: size }, (_, at) => advantages[Math.floor(at / 10)]!),
    },
  }
}

describe('rows that teach nothing', () => {
  it.each(lossNames)('count in the denominators of %s, whatever the entropy bonus', async loss => {
    const normOf = async (lesson: Lesson, entropy: number): Promise<number> => {
      const options = {
        loss: lossNamed(loss),
        lossOptions: {},
        epochs: 1,
        updates: 1,
        seed: 1,
        signal,
      }
      const update = { learningRate: 0, clip: 1e9 }
      return (await learn(model, lesson, { ...options, update, entropy })).gradientNorm
    }
    const lesson = await lessonOf([1, -0.5, 0, 0, 0])
    const without = await normOf(lesson, 0)
    // So small a bonus moves nothing by itself, but every row is gone over.
    expect(await normOf(lesson, 1e-30)).toBeCloseTo(without, 6)
    const alone = await normOf(await lessonOf([1, -0.5]), 0)
    // Five trajectories divide what two of them teach.
    if (loss !== 'gpg') expect(alone / without).toBeCloseTo(2.5, 3)
  })
})
