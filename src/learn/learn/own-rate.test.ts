import { expect, it } from 'vitest'
import type { ModelWeights } from '../model/model.ts'
import { makeOwnRate, shortenStep } from './own-rate.ts'

/** The rate after steps that move the policy in proportion to the square of the rate. */
function settled(reach: number): { readonly rate: number; readonly kl: number } {
  const own = makeOwnRate()
  let kl = 0
  for (let step = 0; step < 60; step++) {
    kl = reach * own.now() ** 2
    own.learn(kl)
  }
  return { rate: own.now(), kl }
}

it('a rate that finds itself settles where steps move the policy a little, whatever the model', () => {
  for (const reach of [1e3, 3e3, 6e3]) {
    const { kl } = settled(reach)
    expect(kl).toBeGreaterThan(0.0008)
    expect(kl).toBeLessThan(0.005)
  }
  expect(settled(1e3).rate).toBeGreaterThan(settled(6e3).rate)
})

it('it never leaves its bounds', () => {
  expect([settled(0).rate, settled(1e12).rate]).toEqual([2e-3, 4e-4])
})

it('a step that moves the policy too far is shortened until it does not, however steep the way', async () => {
  const tensorsAt = (at: number) => [{ name: 'all', shape: [1], data: Float32Array.of(at) }]
  for (const steepness of [2, 4]) {
    let at = 1
    const model = {
      weights: async () => ({ version: 7, tensors: tensorsAt(at) }),
      async take({ version, tensors }: ModelWeights) {
        expect(version).toBe(7)
        at = tensors[0]!.data[0]!
      },
    }
    const measure = async () => ({ metrics: { kl: at ** steepness } })
    const from = { version: 6, tensors: tensorsAt(0) }
    const { whole, change } = await shortenStep(model, from, measure)
    expect(whole).toBe(1)
    expect(change.metrics.kl).toBeLessThan(0.01)
    expect(at).toBeGreaterThan(0)
  }
})
