import { expect, it } from 'vitest'
import { makeOwnRate } from './own-rate.ts'

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
