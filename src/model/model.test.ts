import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { random, seedOf, shuffle } from '../math/random.ts'
import {
  type EmbeddedModel,
  type EmbeddedSample,
  type EmbeddedSampleRequest,
  type ModelShape,
  openModel,
  type TrainingRow,
} from './model.ts'

const shape: ModelShape = {
  vocabulary: 61,
  width: 32,
  layers: 2,
  heads: 2,
  hidden: 48,
  context: 96,
}

/** So large that a token takes far longer than a message between threads. */
const slow: ModelShape = {
  vocabulary: 61,
  width: 256,
  layers: 4,
  heads: 4,
  hidden: 512,
  context: 1024,
}
const call = { signal: new AbortController().signal }

function prompt(length: number, name = 0): Int32Array {
  const draw = random(seedOf('prompt', name))
  return Int32Array.from({ length }, () => Math.floor(draw() * shape.vocabulary))
}

function request(changes: Partial<EmbeddedSampleRequest> = {}): EmbeddedSampleRequest {
  return { prompt: prompt(9), maxTokens: 20, temperature: 1, stop: [], seed: 1, ...changes }
}

/** A model whose weights are far enough from their start that its distributions have shape. */
async function openTaught(threads: number): Promise<EmbeddedModel> {
  const model = await openModel({ shape, seed: 5 }, { threads, kernel: 'plain' })
  const rows = makeRows(6)
  for (let step = 0; step < 8; step++) {
    await model.gradient(rows, likelihood)
    await model.applyGradient({ learningRate: 0.01, clip: 1 })
  }
  return model
}

function makeRows(count: number): TrainingRow[] {
  const draw = random(seedOf('rows', count))
  return Array.from({ length: count }, (_, row) => {
    const length = 5 + Math.floor(draw() * 60)
    const mask = Uint8Array.from({ length }, (_, token) => (token > 0 && draw() < 0.6 ? 1 : 0))
    return { ids: prompt(length, row), mask, temperature: [1, 0.8, 1.2][row % 3]! }
  })
}

function likelihood({ mask, logprobs }: { mask: Uint8Array; logprobs: Float64Array }) {
  const count = mask.reduce((sum, wanted) => sum + wanted, 0)
  const logprobGradient = Float64Array.from(mask, wanted => -wanted / count)
  return { logprobGradient, loss: -logprobs.reduce((sum, logprob) => sum + logprob, 0) / count }
}

/** Everything of a sample that must not depend on circumstances. */
function bits({ ids, logprobs, entropies, finish, version }: EmbeddedSample) {
  return { ids, logprobs, entropies, finish, version }
}

let model: EmbeddedModel
let folder: string
beforeAll(async () => {
  model = await openTaught(2)
  folder = await mkdtemp(join(tmpdir(), 'model-'))
})
afterAll(async () => {
  await model[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
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

describe('training', () => {
  it('leaves the same weights, bit for bit, on any number of threads', async () => {
    const weights: Buffer[] = []
    for (const threads of [1, 2, 4]) {
      await using fresh = await openModel({ shape, seed: 2 }, { threads, kernel: 'plain' })
      for (let step = 0; step < 3; step++) {
        await fresh.gradient(makeRows(20), likelihood)
        await fresh.applyGradient({ learningRate: 0.01, clip: 1, weightDecay: 0.1 })
      }
      await fresh.save(join(folder, `threads-${threads}`))
      weights.push(await readFile(join(folder, `threads-${threads}`, 'model.safetensors')))
    }
    expect(weights[1]!.equals(weights[0]!)).toBe(true)
    expect(weights[2]!.equals(weights[0]!)).toBe(true)
  })

  it('waits for samples under way before the weights change, and holds new ones', async () => {
    await using fresh = await openModel({ shape, seed: 2 }, { threads: 1 })
    await fresh.gradient(makeRows(3), likelihood)
    let update: Promise<unknown> | undefined
    let later: Promise<EmbeddedSample> | undefined
    const onToken = () => {
      update ??= fresh.applyGradient({ learningRate: 0.01, clip: 1 })
      later ??= fresh.sample(request(), call)
    }
    const running = await fresh.sample(request({ maxTokens: 60, onToken }), call)
    expect(running).toMatchObject({ version: 0, ids: { length: 60 } })
    await update
    expect((await later!).version).toBe(1)
    expect(fresh.version()).toBe(1)
  })

  it('survives a loss that throws and one that is not finite', async () => {
    const rows = makeRows(2)
    const boom = () => {
      throw new Error('boom')
    }
    await expect(model.gradient(rows, boom)).rejects.toThrow('boom')
    const nothing = ({ mask }: { mask: Uint8Array }) => ({
      logprobGradient: new Float64Array(mask.length).fill(Number.NaN),
    })
    await expect(model.gradient(rows, nothing)).rejects.toThrow('logprobGradient is NaN')
    expect((await model.sample(request(), call)).ids).toHaveLength(20)
  })
})

describe('checkpoints', () => {
  it('open again with the same weights and the files that came with them', async () => {
    const files = new Map([['tokenizer.json', new TextEncoder().encode('{}')]])
    await using first = await openModel({ shape, seed: 8, files }, { threads: 1 })
    await first.save(join(folder, 'saved'))
    await using second = await openModel({ folder: join(folder, 'saved') }, { threads: 1 })
    expect(second.shape).toEqual(shape)
    expect([...second.files.keys()]).toEqual(['tokenizer.json'])
    expect(bits(await second.sample(request(), call))).toEqual(
      bits(await first.sample(request(), call)),
    )
    expect(await model.load(join(folder, 'saved'))).toEqual({ version: 9 })
    expect((await model.sample(request(), call)).ids).toEqual(
      (await first.sample(request(), call)).ids,
    )
  })

  it('resume training where it was: the same weights as without the break', async () => {
    const step = async (trained: EmbeddedModel) => {
      await trained.gradient(makeRows(5), likelihood)
      await trained.applyGradient({ learningRate: 0.01, clip: 1, warmup: 6 })
    }
    const here = join(folder, 'resumed')
    await using whole = await openModel({ shape, seed: 4 }, { threads: 1 })
    for (let count = 0; count < 2; count++) await step(whole)
    await whole.save(here)
    await whole.saveOptimizer(here)
    await using resumed = await openModel({ folder: here }, { threads: 2 })
    await resumed.loadOptimizer(here)
    expect(resumed.version()).toBe(2)
    for (const each of [whole, resumed]) {
      for (let count = 0; count < 2; count++) await step(each)
    }
    const sample = await whole.sample(request(), call)
    expect(bits(await resumed.sample(request(), call))).toEqual(bits(sample))
  })

  it('refuse what is not an embedded model, saying why', async () => {
    await using first = await openModel({ shape, seed: 8 }, { threads: 1 })
    const here = join(folder, 'broken')
    await first.save(here)
    const config = JSON.parse(await readFile(join(here, 'config.json'), 'utf8'))
    const write = (changes: object) =>
      writeFile(join(here, 'config.json'), JSON.stringify({ ...config, ...changes }))
    await write({ tie_word_embeddings: false })
    await expect(openModel({ folder: here })).rejects.toThrow('tie_word_embeddings is false')
    await write({ hidden_size: 64 })
    await expect(openModel({ folder: here })).rejects.toThrow('model.embed_tokens.weight')
    await write({ num_attention_heads: 3, num_key_value_heads: 3 })
    await expect(openModel({ folder: here })).rejects.toThrow('multiple of 8')
    await expect(first.load(join(folder, 'nowhere'))).rejects.toThrow('ENOENT')
  })
})

describe('requests', () => {
  it.each([
    [{ prompt: prompt(96) }, "leaves no room in the model's context of 96"],
    [{ prompt: new Int32Array(0) }, '0 tokens do not fit'],
    [{ prompt: Int32Array.of(1, 61) }, 'Token 61 at place 1'],
    [{ maxTokens: 0 }, 'maxTokens must be'],
    [{ temperature: -1 }, 'temperature must be'],
    [{ temperature: Number.NaN }, 'temperature must be'],
    [{ topP: 0 }, 'topP must be'],
    [{ topK: 1.5 }, 'topK must be a whole number'],
    [{ minP: 2 }, 'minP must be'],
    [{ topq: 1 }, 'no "topq". Known: prompt, maxTokens'],
  ])('%o is refused', async (changes, message) => {
    await expect(model.sample(request(changes as object), call)).rejects.toThrow(message)
  })

  it('of rows and scores are refused when they do not fit', async () => {
    const row = { ids: prompt(4), mask: Uint8Array.of(0, 1, 1, 1), temperature: 1 }
    const ask = (changes: Partial<TrainingRow>) =>
      model.gradient([{ ...row, ...changes }], likelihood)
    await expect(ask({ ids: prompt(97) })).rejects.toThrow('context')
    await expect(ask({ mask: Uint8Array.of(0, 1) })).rejects.toThrow('a mask of 2')
    await expect(ask({ mask: Uint8Array.of(1, 1, 1, 1) })).rejects.toThrow('first token')
    await expect(ask({ mask: Uint8Array.of(0, 2, 1, 1) })).rejects.toThrow('only 0 and 1')
    await expect(model.score(prompt(4), 0, { temperature: 1 }, call)).rejects.toThrow('from')
    await expect(model.applyGradient({ learningRate: 1, clip: 0 })).rejects.toThrow('clip')
  })

  it('after the model was closed fail, and closing ends what was running', async () => {
    const fresh = await openModel({ shape, seed: 2 }, { threads: 2 })
    const running = fresh.sample(request({ maxTokens: 80 }), call)
    await fresh[Symbol.asyncDispose]()
    expect((await running).finish).toBe('abort')
    await expect(fresh.sample(request(), call)).rejects.toThrow('closed')
    await fresh[Symbol.asyncDispose]()
  })
})

it('an idle model does not keep its process alive', () => {
  const script = `
    const { openModel } = await import(${JSON.stringify(new URL('model.ts', import.meta.url).href)})
    const model = await openModel(${JSON.stringify({ shape, seed: 1 })}, { threads: 3 })
    const request = { prompt: Int32Array.of(1), maxTokens: 3, temperature: 1, stop: [], seed: 1 }
    const { ids } = await model.sample(request, { signal: AbortSignal.timeout(10_000) })
    console.log(ids.length)`
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    { encoding: 'utf8', timeout: 30_000 },
  )
  expect({ stdout, stderr, status }).toEqual({ stdout: '3\n', stderr: '', status: 0 })
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
