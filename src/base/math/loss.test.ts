import { describe, expect, it } from 'vitest'
import {
  batchOf,
  cutRows,
  type FullTokens,
  numericGradient,
  randomTokens,
  trained,
  wholeTrajectories,
} from '../../../test/fixtures/math-batch.ts'
import type { Aggregation } from './aggregation.ts'
import { normalisers, selectRows } from './batch.ts'
import type { LossResult, PolicyTokens } from './loss.ts'
import { lossNamed, lossNames } from './registry.ts'

const aggregations: readonly Aggregation[] = [
  { kind: 'token-mean' },
  { kind: 'sequence-mean-token-mean' },
  { kind: 'sequence-mean-token-sum' },
  { kind: 'trajectory-mean' },
  { kind: 'constant', divisor: 7 },
]
/** Those whose aggregation is part of their name take no other. */
const fixed: readonly string[] = ['bnpo', 'dr-grpo']
/** One ratio per trajectory. */
const sequential: readonly string[] = ['gspo', 'gmpo']
const rounds = process.env.ESPALIER_SOAK ? 200 : 12

/** Every loss with every aggregation it takes, with a KL penalty and an entropy bonus. */
const variants = lossNames.flatMap(name => {
  const common = {
    kl: { coefficient: 0.3 },
    entropy: 0.1,
    // Bounds that random ratios between 0.6 and 1.6 cross on every side.
    ...(name === 'gspo' ? { low: 0.1, high: 0.1 } : {}),
    ...(name === 'ppo' ? { dual: 1.3 } : {}),
  }
  const choices: readonly (typeof common & { readonly aggregation?: Aggregation })[] =
    fixed.includes(name) ? [common] : aggregations.map(aggregation => ({ ...common, aggregation }))
  return choices.map(chosen => ({
    name,
    title: chosen.aggregation ? `${name} ${chosen.aggregation.kind}` : name,
    run: (tokens: PolicyTokens, more: object = {}) =>
      lossNamed(name)(tokens, { ...chosen, ...more }),
  }))
})

/** cispo stops the gradient of its weight, so that its slope is not that of its value. */
const differentiable = variants.filter(({ name }) => name !== 'cispo')

function expectClose(ours: ArrayLike<number>, theirs: ArrayLike<number>, tolerance: number) {
  expect(ours.length).toBe(theirs.length)
  for (let index = 0; index < ours.length; index++) {
    const distance = Math.abs(ours[index]! - theirs[index]!)
    expect(distance).toBeLessThanOrEqual(tolerance * (1 + Math.abs(theirs[index]!)))
  }
}

describe('every loss', () => {
  it.each(differentiable)('$title: its gradient agrees with finite differences', ({ run }) => {
    for (let key = 0; key < rounds; key++) {
      const tokens = randomTokens(key, { varying: key % 2 === 1 })
      const lossOf = (change: Partial<FullTokens>) => run({ ...tokens, ...change }).loss
      const { gradient, entropyGradient } = run(tokens)
      const slopes = numericGradient(tokens, tokens.logprobs, logprobs => lossOf({ logprobs }))
      expectClose(gradient, slopes, 2e-8)
      const bonus = numericGradient(tokens, tokens.entropies, entropies => lossOf({ entropies }))
      expectClose(entropyGradient!, bonus, 2e-8)
    }
  })

  it.each(variants)('$title: micro-batches sum to the whole', ({ name, run }) => {
    for (let key = 0; key < rounds; key++) {
      const tokens = randomTokens(key, { varying: true })
      const whole = normalisers(tokens)
      const parts = sequential.includes(name)
        ? wholeTrajectories(tokens)
        : Array.from(tokens.trajectory.keys(), row => [row])
      const expected = run(tokens)
      const results = parts.map(rows => run(selectRows(tokens, rows), { normalisers: whole }))
      const sum = (part: (result: LossResult) => number) =>
        results.reduce((total, result) => total + part(result), 0)
      expect(sum(result => result.loss)).toBeCloseTo(expected.loss, 11)
      expect(sum(result => result.terms.kl)).toBeCloseTo(expected.terms.kl, 11)
      expect(sum(result => result.clipped.low)).toBeCloseTo(expected.clipped.low, 11)
      parts.forEach((rows, part) => {
        const own = selectRows({ ...tokens, gradient: expected.gradient }, rows).gradient
        expectClose(results[part]!.gradient, own, 1e-12)
      })
    }
  })

  it.each(variants)('$title: more rows for a trajectory change nothing', ({ run }) => {
    for (let key = 0; key < rounds; key++) {
      const tokens = randomTokens(key, { varying: true })
      const cut = cutRows(tokens, key)
      const before = run(tokens)
      const after = run(cut)
      expect(after.loss).toBeCloseTo(before.loss, 11)
      expect(after.clipped).toEqual(before.clipped)
      expectClose(trained(cut, after.gradient), trained(tokens, before.gradient), 1e-12)
    }
  })

  it.each(variants)('$title: context is never read and has no gradient', ({ run }) => {
    const tokens = randomTokens(3)
    const { loss, gradient, entropyGradient } = run(tokens)
    expect(tokens.mask).toContain(0)
    expect(loss).not.toBeNaN()
    tokens.mask.forEach((mask, token) => {
      if (mask === 0) expect([gradient[token], entropyGradient![token]]).toEqual([0, 0])
    })
  })

  it.each(variants)('$title: its terms sum to it', ({ run }) => {
    const { loss, terms } = run(randomTokens(4))
    expect(terms.policy + terms.kl + terms.entropy).toBeCloseTo(loss, 12)
    expect(terms.kl).toBeGreaterThan(0)
    expect(terms.entropy).toBeLessThan(0)
  })

  it.each(lossNames)('%s: an option that it does not have is refused by name', name => {
    expect(() => lossNamed(name)(randomTokens(1), { epsilon: 0.2 })).toThrow(
      `The ${name} loss has no option "epsilon". Known: `,
    )
  })

  it.each(lossNames)('%s: without old log-probabilities every ratio is 1', name => {
    const { oldLogprobs: _, ...tokens } = randomTokens(5)
    const same = { ...tokens, oldLogprobs: tokens.logprobs }
    expect(lossNamed(name)(tokens)).toEqual(lossNamed(name)(same))
    expect(lossNamed(name)(tokens).clipped).toEqual({ low: 0, high: 0, dual: 0 })
  })
})

describe('the worked example of Twinkle', () => {
  const nothing = Number.NaN
  const tokens: PolicyTokens = {
    ...batchOf([{ mask: [0, 1, 1, 1] }, { mask: [0, 0, 1, 1] }]),
    logprobs: Float64Array.of(nothing, -1, -0.5, -2, nothing, nothing, -0.3, -1.2),
    oldLogprobs: Float64Array.of(nothing, -1.2, -0.5, -1.5, nothing, nothing, -0.3, -2.2),
    refLogprobs: Float64Array.of(nothing, -1.1, -0.7, -1.8, nothing, nothing, -0.4, -1.0),
    entropies: Float64Array.of(nothing, 0.9, 0.4, 1.5, nothing, nothing, 0.3, 1.1),
    advantages: Float64Array.of(nothing, 1, 1, 1, nothing, nothing, -0.5, -0.5),
  }
  const clip = { low: 0.2, high: 0.2 }

  it.each([
    ['grpo', {}, -0.0029698814],
    ['grpo', { kl: { coefficient: 0.1 } }, -0.0015643615],
    ['grpo', { kl: { coefficient: 0.1 }, entropy: 0.01 }, -0.0097310282],
    ['gspo', clip, -0.0402383913],
    ['sapo', { positive: 1, negative: 1 }, -0.298051701],
    ['cispo', { low: Number.POSITIVE_INFINITY, high: 0.2 }, 0.4086122639],
    ['bnpo', {}, -0.1894779491],
    ['dr-grpo', { length: 1024 }, -0.0004625926],
    ['dr-grpo', { length: 10 }, -0.0473694873],
  ])('%s %o is %d', (name, options, expected) => {
    expect(lossNamed(name)(tokens, options).loss).toBeCloseTo(expected, 9)
  })

  it('the dual clip holds what a large ratio with a bad advantage would cost', () => {
    const { advantages } = tokens
    const doubled = { ...tokens, advantages: advantages.map(advantage => advantage * 2) }
    const free = lossNamed('ppo')(doubled, { dual: Number.POSITIVE_INFINITY })
    const held = lossNamed('ppo')(doubled, { dual: 2 })
    expect(free.clipped).toEqual({ low: 0, high: 0.2, dual: 0 })
    expect(held.clipped).toEqual({ low: 0, high: 0.2, dual: 0.2 })
    // Token 7 has ratio e and advantage −1: its loss is e freely and 2 when held.
    expect(free.loss - held.loss).toBeCloseTo((Math.E - 2) / 5, 12)
    expect(free.gradient[7]).toBeCloseTo(Math.E / 5, 12)
    expect(held.gradient[7]).toBe(0)
  })
})

describe('far from the old policy', () => {
  const pair = (advantage: number, logRatios: readonly number[]): PolicyTokens => ({
    ...batchOf([{ mask: logRatios.map(() => 1) }]),
    logprobs: Float64Array.from(logRatios, logRatio => logRatio - 50),
    oldLogprobs: new Float64Array(logRatios.length).fill(-50),
    advantages: new Float64Array(logRatios.length).fill(advantage),
  })

  it('gmpo clips a token only on the side that would help', () => {
    const good = lossNamed('gmpo')(pair(1, [1, -1]))
    expect(good.loss).toBeCloseTo(-Math.exp((0.4 - 1) / 2), 12)
    expect(good.clipped).toEqual({ low: 0, high: 0.5, dual: 0 })
    expect(Array.from(good.gradient)).toEqual([-0, expect.closeTo(-Math.exp(-0.3) / 2, 12)])
    const bad = lossNamed('gmpo')(pair(-1, [1, -1]))
    expect(bad.loss).toBeCloseTo(Math.exp((1 - 0.4) / 2), 12)
    expect(bad.clipped).toEqual({ low: 0.5, high: 0, dual: 0 })
  })

  it.each(lossNames.filter(name => name !== 'gpg'))('%s stays finite beyond the clamp', name => {
    for (const advantage of [1, -1]) {
      const { loss, gradient } = lossNamed(name)(pair(advantage, [900, -900]))
      expect(loss).toBeLessThan(1e9)
      expect(loss).toBeGreaterThan(-1e9)
      // cispo's weight is a constant; all others have left the region where they move.
      if (name !== 'cispo') expect(gradient.map(Math.abs)).toEqual(new Float64Array(2))
    }
  })
})

describe('misuse', () => {
  const tokens = randomTokens(6)

  it('names both numbers of a wrong length', () => {
    const short = { ...tokens, advantages: tokens.advantages.subarray(1) }
    const { length } = tokens.mask
    expect(() => lossNamed('ppo')(short)).toThrow(
      `The batch has ${length} tokens, but advantages has ${length - 1}.`,
    )
  })

  it('names the token whose number is missing', () => {
    const token = tokens.mask.indexOf(1)
    const logprobs = Float64Array.from(tokens.logprobs)
    logprobs[token] = Number.NaN
    expect(() => lossNamed('grpo')({ ...tokens, logprobs })).toThrow(
      `logprobs is NaN at trained token ${token}`,
    )
  })

  it('asks for what a term needs', () => {
    const { refLogprobs: _, entropies: __, ...bare } = tokens
    expect(() => lossNamed('ppo')(bare, { kl: { coefficient: 0.1 } })).toThrow('needs refLogprobs')
    expect(() => lossNamed('ppo')(bare, { entropy: 0.1 })).toThrow('needs entropies')
  })

  it('refuses bounds that are none', () => {
    expect(() => lossNamed('ppo')(tokens, { low: -1 })).toThrow('got -1')
    expect(() => lossNamed('ppo')(tokens, { dual: 1 })).toThrow('greater than 1, got 1')
    expect(() => lossNamed('cispo')(tokens, { low: -1 })).toThrow('got -1')
    expect(() => lossNamed('sapo')(tokens, { positive: 0 })).toThrow('got 0')
    expect(() => lossNamed('gspo')(tokens, { gradient: 'both' })).toThrow('Known: sequence, token')
  })

  it('refuses a part of a trajectory where its ratio needs all of it', () => {
    const rows = [
      { trajectory: 0, mask: [1, 1] },
      { trajectory: 0, mask: [1] },
    ]
    const numbers = Float64Array.of(-1, -1, -1)
    const both = { ...batchOf(rows), logprobs: numbers, oldLogprobs: numbers, advantages: numbers }
    const part = selectRows(both, [0])
    for (const name of sequential) {
      expect(() => lossNamed(name)(part, { normalisers: normalisers(both) })).toThrow(
        'Trajectory 0 has 3 trained tokens, but 2 are in this micro-batch',
      )
    }
  })

  it('a batch without a trained token costs nothing', () => {
    const empty = { ...tokens, mask: new Uint8Array(tokens.mask.length) }
    for (const name of lossNames) expect(lossNamed(name)(empty).loss).toBe(0)
  })
})
