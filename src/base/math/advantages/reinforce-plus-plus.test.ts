import { describe, expect, it } from 'vitest'
import { batchOf, cutRows, randomTokens, trained } from '../../../../test/fixtures/math-batch.ts'
import {
  placeRewards,
  reinforcePlusPlusAdvantages,
  reinforcePlusPlusBaselineAdvantages,
  tokenReturns,
} from './reinforce-plus-plus.ts'

/** verl's recursion, which multiplies the running return by the mask after each step. */
function verlReturns(rewards: readonly number[], mask: readonly number[], gamma: number): number[] {
  const returns = new Array<number>(rewards.length)
  let running = 0
  for (let token = rewards.length - 1; token >= 0; token--) {
    running = rewards[token]! + gamma * running
    returns[token] = running
    running *= mask[token]!
  }
  return returns
}

function entries(rewards: readonly (number | undefined)[]) {
  return rewards.map((reward, trajectory) => ({ group: 'g', trajectory, reward }))
}

describe('REINFORCE++', () => {
  it('credit flows through tool spans; in verl it ends at the first', () => {
    const mask = [1, 1, 0, 1, 1]
    const batch = batchOf([{ mask }])
    const rewards = Float64Array.of(0, 0, 0, 0, 1)
    expect(verlReturns([0, 0, 0, 0, 1], mask, 1)).toEqual([0, 0, 1, 1, 1])
    expect(trained(batch, tokenReturns(batch, rewards, 1))).toEqual([1, 1, 1, 1])
  })

  it('a reward is placed on the last trained token; on a masked one verl would lose it', () => {
    const mask = [1, 1, 0]
    const batch = batchOf([{ mask }])
    expect(verlReturns([0, 0, 1], mask, 1).slice(0, 2)).toEqual([0, 0])
    expect(Array.from(placeRewards(batch, [1]))).toEqual([0, 1, 0])
  })

  it('the reward is placed once, in the last row that trains a token', () => {
    const batch = batchOf([
      { trajectory: 0, mask: [1, 1] },
      { trajectory: 1, mask: [1] },
      { trajectory: 0, mask: [0, 1, 0] },
      { trajectory: 0, mask: [0] },
    ])
    const placed = placeRewards(batch, [5, 7])
    expect(Array.from(placed)).toEqual([0, 0, 7, 0, 5, 0, 0])
    expect(Array.from(tokenReturns(batch, placed, 0.5))).toEqual([1.25, 2.5, 7, 0, 5, 0, 0])
  })

  it('discounts over trained tokens only, so that cutting rows changes nothing', () => {
    for (let key = 0; key < 20; key++) {
      const whole = randomTokens(key)
      const cut = cutRows(whole, key)
      const rewards = entries([1, 0.5, -1, 2, 0.25])
      const options = { gamma: 0.9, kl: { coefficient: 0.1 } }
      const before = trained(whole, reinforcePlusPlusAdvantages(whole, rewards, options))
      const after = trained(cut, reinforcePlusPlusAdvantages(cut, rewards, options))
      after.forEach((value, index) => {
        expect(value).toBeCloseTo(before[index]!, 10)
      })
      const based = { kl: { coefficient: 0.1 } }
      const first = trained(whole, reinforcePlusPlusBaselineAdvantages(whole, rewards, based))
      const second = trained(cut, reinforcePlusPlusBaselineAdvantages(cut, rewards, based))
      second.forEach((value, index) => {
        expect(value).toBeCloseTo(first[index]!, 10)
      })
    }
  })

  it('penalises KL token by token, before whitening', () => {
    const batch = {
      ...batchOf([{ mask: [1, 0, 1] }]),
      logprobs: Float64Array.of(-1, Number.NaN, -1),
      refLogprobs: Float64Array.of(-2, Number.NaN, -1.5),
    }
    const options = { whiten: false, kl: { coefficient: 0.1, estimator: 'k1' } } as const
    const advantages = reinforcePlusPlusAdvantages(batch, entries([1]), options)
    expect(Array.from(advantages)).toEqual([expect.closeTo(0.85, 12), 0, expect.closeTo(0.95, 12)])
    expect(() =>
      reinforcePlusPlusAdvantages(batchOf([{ mask: [1] }]), entries([1]), options),
    ).toThrow('needs logprobs and refLogprobs')
  })

  it('with a baseline, one advantage per trajectory remains', () => {
    const batch = batchOf([{ mask: [1, 1] }, { mask: [1, 0] }])
    const plain = reinforcePlusPlusBaselineAdvantages(batch, entries([1, 0]), { whiten: false })
    expect(Array.from(plain)).toEqual([0.5, 0.5, -0.5, 0])
  })

  it('a trained token of a trajectory that was never scored is refused', () => {
    const batch = batchOf([{ mask: [1] }, { mask: [1] }])
    const missing = entries([1, undefined])
    expect(() => reinforcePlusPlusAdvantages(batch, missing)).toThrow(
      'Trajectory 1 has trained tokens and reward undefined',
    )
    expect(() => reinforcePlusPlusBaselineAdvantages(batch, missing)).toThrow(
      'Trajectory 1 has trained tokens but no advantage',
    )
    const masked = batchOf([{ mask: [1] }, { mask: [0] }])
    expect(Array.from(reinforcePlusPlusAdvantages(masked, missing, { whiten: false }))).toEqual([
      1, 0,
    ])
  })
})
