import { describe, expect, it } from 'vitest'
import { batchOf, cutRows, randomTokens } from '../../../test/fixtures/math-batch.ts'
import { policyMetrics } from './metrics.ts'

const nothing = Number.NaN
const tokens = {
  ...batchOf([{ mask: [0, 1, 1, 1] }, { mask: [0, 0, 1, 1] }]),
  logprobs: Float64Array.of(nothing, -1, -0.5, -2, nothing, nothing, -0.3, -1.2),
  oldLogprobs: Float64Array.of(nothing, -1.2, -0.5, -1.5, nothing, nothing, -0.3, -2.2),
  advantages: Float64Array.of(nothing, 1, 1, 1, nothing, nothing, -0.5, -0.5),
}

describe('policyMetrics', () => {
  it('agrees with the worked example of Twinkle', () => {
    const metrics = policyMetrics(tokens)!
    expect(metrics.meanLogprob).toBeCloseTo(-1, 12)
    expect(metrics.confidence).toBeCloseTo(0.36787944, 8)
    expect(metrics.change).toMatchObject({
      meanOldLogprob: expect.closeTo(-1.14, 12),
      meanDifference: expect.closeTo(0.14, 12),
      kl: expect.closeTo(0.16924305, 8),
      maximumKl: expect.closeTo(0.71828183, 8),
      maximumRatio: expect.closeTo(Math.E, 12),
      minimumRatio: expect.closeTo(Math.exp(-0.5), 12),
      clipped: { low: 0, high: 0.2 },
    })
    expect(policyMetrics(tokens, { clips: 'weight' })!.change!.clipped).toEqual({
      low: 0.2,
      high: 0.4,
    })
  })

  it('counts trajectories for sequence clips, however they were cut', () => {
    expect(policyMetrics(tokens, { clips: 'sequence' })!.change!.clipped).toEqual({
      low: 0,
      high: 0,
    })
    for (let key = 0; key < 10; key++) {
      const whole = randomTokens(key, { varying: true })
      const options = { clips: 'sequence', low: 0.05, high: 0.05 } as const
      const before = policyMetrics(whole, options)!
      expect(policyMetrics(cutRows(whole, key), options)!.change!.clipped).toEqual(
        before.change!.clipped,
      )
      expect(before.entropy).toBeGreaterThan(0)
    }
  })

  it('never scales by the temperature: what that gives is about no distribution', () => {
    // Twinkle multiplies log-probabilities by T, and then its KL is another number altogether.
    const scaledKl = (temperature: number) => {
      const scale = (values: Float64Array) => values.map(value => value * temperature)
      const { logprobs, oldLogprobs } = tokens
      return policyMetrics({
        ...tokens,
        logprobs: scale(logprobs),
        oldLogprobs: scale(oldLogprobs),
      })!.change!.kl
    }
    expect(scaledKl(0.5)).toBeCloseTo(0.0365, 4)
    expect(scaledKl(2)).toBeCloseTo(0.9698, 4)
    for (const temperature of [0.5, 0.7, 2]) {
      const metrics = policyMetrics(tokens, { temperature, basis: 'tempered' })!
      expect(metrics.change!.kl).toBeCloseTo(0.16924305, 8)
      expect(metrics.about).toBe(`the distribution at temperature ${temperature}`)
    }
  })

  it('multiplying a tempered log-probability does not give the raw one back', () => {
    const logSoftmax = (logits: readonly number[], temperature: number) => {
      const scaled = logits.map(logit => logit / temperature)
      const total = Math.log(scaled.reduce((sum, logit) => sum + Math.exp(logit), 0))
      return scaled.map(logit => logit - total)
    }
    expect(logSoftmax([2, 1, 0], 1)[0]).toBeCloseTo(-0.40761, 5)
    expect(2 * logSoftmax([2, 1, 0], 2)[0]!).toBeCloseTo(-1.36054, 5)
  })

  it('at temperature 0 the raw log-probabilities count, and no others exist', () => {
    const greedy = policyMetrics(tokens, { temperature: 0 })!
    expect(greedy.meanLogprob).toBeCloseTo(-1, 12)
    expect(greedy.about).toContain('sampled at temperature 0')
    expect(() => policyMetrics(tokens, { temperature: 0, basis: 'tempered' })).toThrow(
      'no tempered distribution at temperature 0',
    )
  })

  it('names the tokens of the largest divergence, with their place', () => {
    const top = policyMetrics(tokens, { top: 2 })!.change!.top
    expect(top).toMatchObject([
      { row: 1, trajectory: 1, position: 3, token: 7, logprob: -1.2, oldLogprob: -2.2 },
      { row: 0, trajectory: 0, position: 3, token: 3, logprob: -2, oldLogprob: -1.5 },
    ])
    expect(policyMetrics(tokens, { top: 50 })!.change!.top).toHaveLength(3)
  })

  it('a short list of the largest is the head of the long one', () => {
    const many = randomTokens(11)
    const all = policyMetrics(many, { top: 1000 })!.change!.top
    for (const top of [1, 2, 3, 5]) {
      expect(policyMetrics(many, { top })!.change!.top).toEqual(all.slice(0, top))
    }
  })

  it('leaves out what it was not given', () => {
    const { oldLogprobs: _, ...bare } = tokens
    expect(Object.keys(policyMetrics(bare)!)).toEqual([
      'about',
      'tokens',
      'meanLogprob',
      'confidence',
    ])
    const { advantages: __, ...unweighed } = tokens
    expect(policyMetrics(unweighed)!.change).not.toHaveProperty('clipped')
    expect(policyMetrics({ ...tokens, mask: new Uint8Array(8) })).toBeUndefined()
  })

  it('effective sample size falls as ratios spread', () => {
    const ratios = [Math.exp(0.2), 1, Math.exp(-0.5), 1, Math.E]
    const sum = ratios.reduce((total, ratio) => total + ratio, 0)
    const squares = ratios.reduce((total, ratio) => total + ratio * ratio, 0)
    const { effectiveSampleShare } = policyMetrics(tokens)!.change!
    expect(effectiveSampleShare).toBeCloseTo(sum ** 2 / (5 * squares), 12)
  })
})
