import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  bits,
  call,
  likelihood,
  makeRows,
  openTaught,
  prompt,
  request,
  shape,
  slow,
} from '../../../test/fixtures/small-model.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { type EmbeddedModel, type EmbeddedSample, openModel } from './model.ts'

let model: EmbeddedModel
beforeAll(async () => {
  model = await openTaught(2)
})
afterAll(async () => {
  await model[Symbol.asyncDispose]()
})

describe('sampling', () => {
  it('gives the same bits alone, in any company and order, on any number of threads', async () => {
    const requests = Array.from({ length: 24 }, (_, index) =>
      request({
        prompt: prompt(1 + ((index * 13) % 50), index % 5),
        maxTokens: 1 + ((index * 7) % 40),
        temperature: [1, 0.5, 0, 1.5][index % 4]!,
        topP: index % 3 === 0 ? 0.8 : 1,
        topK: index % 5 === 0 ? 7 : 0,
        minP: index % 7 === 0 ? 0.02 : 0,
        stop: [3],
        seed: index,
      }),
    )
    const alone: EmbeddedSample[] = []
    {
      await using fresh = await openTaught(1)
      for (const one of requests) alone.push(await fresh.sample(one, call))
    }
    for (const threads of [1, 2, 3]) {
      await using fresh = await openTaught(threads)
      const order = shuffle([...requests.keys()], random(seedOf('order', threads)))
      const together = await Promise.all(order.map(at => fresh.sample(requests[at]!, call)))
      order.forEach((at, index) => {
        expect(bits(together[index]!)).toEqual(bits(alone[at]!))
      })
    }
  })

  it('gives the bits of training: score of the same tokens at the same temperature', async () => {
    for (const temperature of [1, 0.6, 1.7]) {
      const sample = await model.sample(request({ temperature, topP: 0.9, topK: 20 }), call)
      const ids = Int32Array.of(...prompt(9), ...sample.ids)
      const scored = await model.score(ids, 9, { temperature }, call)
      expect(scored.logprobs).toEqual(sample.logprobs)
      expect(scored.entropies).toEqual(sample.entropies)
      const mask = new Uint8Array(ids.length).fill(1, 9)
      await model.gradient([{ ids, mask, temperature }], numbers => {
        expect(Float32Array.from(numbers.logprobs.subarray(9))).toEqual(sample.logprobs)
        expect(Float32Array.from(numbers.entropies.subarray(9))).toEqual(sample.entropies)
        return { logprobGradient: new Float64Array(ids.length) }
      })
    }
  })

  it('draws by seed and position: a sample cut short and resumed goes on the same', async () => {
    const whole = await model.sample(request({ maxTokens: 24 }), call)
    const first = await model.sample(request({ maxTokens: 10 }), call)
    expect(first.finish).toBe('length')
    const resumed = Int32Array.of(...prompt(9), ...first.ids)
    const rest = await model.sample(request({ prompt: resumed, maxTokens: 14 }), call)
    expect([...first.ids, ...rest.ids]).toEqual([...whole.ids])
    expect([...first.logprobs, ...rest.logprobs]).toEqual([...whole.logprobs])
    const other = await model.sample(request({ maxTokens: 24, seed: { high: 1, low: 2 } }), call)
    expect([...other.ids]).not.toEqual([...whole.ids])
  })

  it('draws ids as often as it says they are likely', async () => {
    const samples = await Promise.all(
      Array.from({ length: 3000 }, (_, seed) =>
        model.sample(request({ maxTokens: 1, seed, topLogprobs: 61 }), call),
      ),
    )
    const counts = new Float64Array(shape.vocabulary)
    for (const { ids } of samples) counts[ids[0]!]! += 1
    const expected = samples[0]!.topLogprobs![0]!
    expect(expected.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 5)
    const surprise = expected.reduce((sum, { id, logprob }) => {
      const mean = Math.exp(logprob) * samples.length
      return sum + (counts[id]! - mean) ** 2 / mean
    }, 0)
    // Chi-squared with 60 degrees of freedom: 99.9 % lie below 99.6.
    expect(surprise).toBeLessThan(99.6)
    for (const { ids, logprobs } of samples.slice(0, 50)) {
      expect(expected.find(({ id }) => id === ids[0])!.logprob).toBe(logprobs[0])
    }
  })

  it('keeps to top-k, top-p and min-p, and reports log-probabilities from before them', async () => {
    const { topLogprobs } = await model.sample(request({ maxTokens: 1, topLogprobs: 61 }), call)
    const ranked = topLogprobs![0]!
    const limits = [
      { changes: { topK: 3 }, allowed: 3 },
      { changes: { topP: 0.3 }, allowed: countMass(ranked, 0.3) },
      { changes: { minP: 0.5 }, allowed: countAbove(ranked, 0.5) },
      {
        changes: { topK: 5, topP: 0.6 },
        allowed: countMass(renormalised(ranked.slice(0, 5)), 0.6),
      },
    ]
    for (const { changes, allowed } of limits) {
      const samples = await Promise.all(
        Array.from({ length: 300 }, (_, seed) =>
          model.sample(request({ maxTokens: 1, seed, ...changes }), call),
        ),
      )
      const seen = new Set(samples.map(({ ids }) => ids[0]!))
      const wanted = ranked.slice(0, allowed).map(({ id }) => id)
      expect([...seen].sort(byNumber)).toEqual(wanted.sort(byNumber))
      for (const { ids, logprobs } of samples) {
        expect(ranked.find(({ id }) => id === ids[0])!.logprob).toBe(logprobs[0])
      }
    }
  })

  it('takes the likeliest id at temperature 0', async () => {
    const greedy = await model.sample(request({ temperature: 0, topLogprobs: 1 }), call)
    expect(greedy.topLogprobs!.map(([best]) => best!.id)).toEqual([...greedy.ids])
    const ids = Int32Array.of(...prompt(9), ...greedy.ids)
    expect((await model.score(ids, 9, { temperature: 1 }, call)).logprobs).toEqual(greedy.logprobs)
  })

  it('ends at a stop id, which it includes, at the limit, or at the end of the context', async () => {
    const whole = await model.sample(request(), call)
    const stop = whole.ids[6]!
    const stopped = await model.sample(request({ stop: [stop] }), call)
    expect(stopped.finish).toBe('stop')
    expect([...stopped.ids]).toEqual([...whole.ids.slice(0, whole.ids.indexOf(stop) + 1)])
    const long = await model.sample(request({ prompt: prompt(90), maxTokens: 50 }), call)
    expect(long).toMatchObject({ finish: 'length', ids: { length: 6 } })
  })

  it('streams tokens and lets later requests join while earlier ones run', async () => {
    await using fresh = await openModel({ shape: slow, seed: 1 }, { threads: 1 })
    const seen: number[] = []
    const finished: string[] = []
    let joined: Promise<unknown> | undefined
    const onToken = ({ id }: { id: number }) => {
      seen.push(id)
      joined ??= fresh.sample(request({ maxTokens: 2 }), call).then(() => finished.push('short'))
    }
    const long = await fresh.sample(request({ maxTokens: 400, onToken }), call)
    finished.push('long')
    await joined
    expect(finished).toEqual(['short', 'long'])
    expect(seen).toEqual([...long.ids])
  })
})

it('a sample whose watcher throws fails with what it threw, alone', async () => {
  const onToken = () => {
    throw new Error('enough')
  }
  const watched = model.sample(request({ onToken }), call)
  const other = model.sample(request(), call)
  await expect(watched).rejects.toThrow('enough')
  expect((await other).ids).toHaveLength(20)
})

it('a prompt may be a view of something larger, and be written over at once', async () => {
  const large = new Int32Array(5000)
  large.set(prompt(9), 3000)
  const view = large.subarray(3000, 3009)
  const sample = model.sample(request({ prompt: view }), call)
  view.fill(0)
  expect((await sample).ids).toEqual((await model.sample(request(), call)).ids)
})

describe('aborting', () => {
  it('gives what was sampled so far', async () => {
    const controller = new AbortController()
    let count = 0
    const onToken = () => {
      if (++count === 5) controller.abort()
    }
    await using fresh = await openModel({ shape: slow, seed: 1 }, { threads: 1 })
    const cut = await fresh.sample(request({ maxTokens: 1000, onToken }), controller)
    const { length } = cut.ids
    const whole = await fresh.sample(request({ maxTokens: length }), call)
    expect(cut.finish).toBe('abort')
    expect(length).toBeGreaterThanOrEqual(5)
    expect(length).toBeLessThan(1000)
    expect(whole.ids).toEqual(cut.ids)
    expect(whole.logprobs).toEqual(cut.logprobs)
  })

  it('gives nothing when the signal has aborted before', async () => {
    const sample = await model.sample(request(), { signal: AbortSignal.abort() })
    expect(sample).toMatchObject({ finish: 'abort', ids: { length: 0 } })
    const scored = model.score(prompt(4), 1, { temperature: 1 }, { signal: AbortSignal.abort() })
    await expect(scored).rejects.toThrow('aborted')
  })
})

describe('the prefix cache', () => {
  it('computes only new tokens in the next turn of a session', async () => {
    const first = await model.sample(request({ prompt: prompt(20, 77), session: 's' }), call)
    expect(first.cachedTokens).toBe(0)
    const turn = Int32Array.of(...prompt(20, 77), ...first.ids, 4, 5, 6)
    const second = await model.sample(request({ prompt: turn, session: 's' }), call)
    // The last sampled token was never run through the model, the observed ones are new.
    expect(second.cachedTokens).toBe(turn.length - 4)
  })

  it('computes the prompt of a group once, also when its members come at once', async () => {
    const members = await Promise.all(
      Array.from({ length: 8 }, (_, seed) =>
        model.sample(request({ prompt: prompt(43, 99), maxTokens: 4, seed }), call),
      ),
    )
    const cached = members.map(member => member.cachedTokens)
    expect(cached).toEqual([0, 42, 42, 42, 42, 42, 42, 42])
  })

  it('forgets everything when the weights change', async () => {
    await using fresh = await openModel({ shape, seed: 1 }, { threads: 1 })
    const before = await fresh.sample(request({ session: 's' }), call)
    expect((await fresh.sample(request({ session: 's' }), call)).cachedTokens).toBe(8)
    await fresh.gradient(makeRows(3), likelihood)
    expect(await fresh.applyGradient({ learningRate: 0.01, clip: 1 })).toMatchObject({ version: 1 })
    const after = await fresh.sample(request({ session: 's' }), call)
    expect(after.cachedTokens).toBe(0)
    expect([before.version, after.version]).toEqual([0, 1])
    expect(after.logprobs).not.toEqual(before.logprobs)
  })
})

type Ranked = readonly { readonly id: number; readonly logprob: number }[]

/** How many of the likeliest ids make up this much mass. */
function countMass(ranked: Ranked, mass: number): number {
  let sum = 0
  let count = 0
  while (sum < mass) sum += Math.exp(ranked[count++]!.logprob)
  return count
}

/** How many ids are at least this likely, relative to the likeliest. */
function countAbove(ranked: Ranked, share: number): number {
  return ranked.filter(({ logprob }) => logprob >= ranked[0]!.logprob + Math.log(share)).length
}

function renormalised(ranked: Ranked): Ranked {
  const total = Math.log(ranked.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0))
  return ranked.map(({ id, logprob }) => ({ id, logprob: logprob - total }))
}

function byNumber(a: number, b: number): number {
  return a - b
}
