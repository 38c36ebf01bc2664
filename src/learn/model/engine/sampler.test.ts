import { expect, it } from 'vitest'
import { random, seedOf } from '../../../base/math/random.ts'
import { loadKernel } from '../kernel-file.ts'
import type { SampleNews, SampleOrder } from '../protocol.ts'
import type { ModelShape } from '../shape.ts'
import { Heap } from './heap.ts'
import { initialise } from './parameters.ts'
import { makePlan, takeWhole } from './plan.ts'
import { Sampler } from './sampler.ts'
import { HeapStepper } from './step.ts'
import { Threads } from './threads.ts'
import { Trainer } from './trainer.ts'
import { instantiate } from './webassembly.ts'

const shape: ModelShape = {
  vocabulary: 17,
  width: 16,
  layers: 2,
  heads: 2,
  hidden: 24,
  context: 80,
}

async function makeSampler(cacheBytes: number, { context } = shape) {
  const { module } = await loadKernel('plain')
  const heap = new Heap()
  const kernels = instantiate(module, heap.memory)
  const plan = makePlan(heap, kernels, {
    shape: { ...shape, context },
    threads: 1,
    cacheBytes,
    type: 'f32',
  })
  const threads = new Threads(heap, kernels, { count: 1, file: new URL(import.meta.url), module })
  const { values, count, places, ...rest } = takeWhole(heap, shape)
  initialise(heap.f32.subarray(values / 4, values / 4 + count), places, 1)
  const trainer = new Trainer({ heap, plan, kernels, threads, keptBudget: 0 })
  trainer.train({ values, count, places, ...rest })
  trainer.pack()
  const samples = new Map<number, SampleNews>()
  const sampler = new Sampler({
    stepper: new HeapStepper({ heap, plan, threads }),
    tell: news => {
      if (news.kind === 'sampled') samples.set(news.id, news.sample)
    },
    version: () => 0,
  })
  return { sampler, samples, blocks: plan.blocks }
}

/** Requests of 30 sessions over three turns, sharing beginnings here and there. */
function makeOrder(session: number, turn: number): SampleOrder {
  const draw = random(seedOf('prompt', session % 7))
  return {
    prompt: Int32Array.from({ length: 15 + turn * 12 }, () => Math.floor(draw() * 17)),
    maxTokens: 5 + session,
    temperature: 1,
    topP: 1,
    topK: 0,
    minP: 0,
    stop: [],
    seed: seedOf(session, turn),
    session: `${session}`,
    topLogprobs: 0,
    stream: false,
  }
}

async function run({
  sampler,
  samples,
}: Awaited<ReturnType<typeof makeSampler>>): Promise<SampleNews[]> {
  for (let turn = 0; turn < 3; turn++) {
    for (let session = 0; session < 30; session++) {
      sampler.add(turn * 100 + session, makeOrder(session, turn))
    }
    while (sampler.hasWork) await sampler.step({ admit: true })
  }
  return [...samples].sort(([a], [b]) => a - b).map(([, sample]) => sample)
}

it('gives the same bits when blocks are scarce: requests wait and sessions are let go', async () => {
  const roomy = await makeSampler(2 ** 22)
  const scarce = await makeSampler(0)
  expect(scarce.blocks).toBe(12)
  const wanted = await run(roomy)
  const found = await run(scarce)
  expect(found).toHaveLength(90)
  found.forEach((sample, index) => {
    const { ids, logprobs, entropies } = wanted[index]!
    expect(sample).toMatchObject({ ids, logprobs, entropies })
  })
  const cached = (samples: SampleNews[]) => samples.reduce((sum, one) => sum + one.cachedTokens, 0)
  expect(cached(found)).toBeLessThan(cached(wanted))
})

it('gives many requests the tokens that each has alone: their turns change nothing', async () => {
  const order = (session: number) => ({ ...makeOrder(session, 1), maxTokens: 40 })
  const together = await makeSampler(2 ** 22)
  for (let session = 0; session < 30; session++) together.sampler.add(session, order(session))
  while (together.sampler.hasWork) await together.sampler.step({ admit: true })
  for (let session = 0; session < 30; session += 7) {
    const alone = await makeSampler(2 ** 22)
    alone.sampler.add(session, order(session))
    while (alone.sampler.hasWork) await alone.sampler.step({ admit: true })
    const { ids, logprobs, entropies } = alone.samples.get(session)!
    expect(together.samples.get(session)).toMatchObject({ ids, logprobs, entropies })
  }
})

it('runs more requests than could all become as long as they may: the latest make way and go on later', async () => {
  const long = { ...shape, context: 400 }
  const order = (id: number) => ({ ...makeOrder(id, 0), maxTokens: 300, session: `${id}` })
  const sampleAll = async (cacheBytes: number) => {
    const opened = await makeSampler(cacheBytes, long)
    const { sampler, samples } = opened
    for (let id = 0; id < 10; id++) sampler.add(id, order(id))
    let steps = 0
    for (; sampler.hasWork && steps < 5000; steps++) await sampler.step({ admit: true })
    return { ...opened, samples, steps }
  }
  const roomy = await sampleAll(2 ** 23)
  const scarce = await sampleAll(0)
  // Two whole contexts of blocks: one after the other in pairs, ten requests would take 1,500 steps.
  expect(scarce.blocks).toBe(52)
  expect(scarce.steps).toBeLessThan(1400)
  expect(scarce.samples.size).toBe(10)
  for (const [id, { ids, logprobs }] of scarce.samples) {
    expect(roomy.samples.get(id)).toMatchObject({ ids, logprobs })
  }
  scarce.sampler.forget()
  expect(scarce.sampler.isRunning).toBe(false)
})

it('ends an aborted request, waiting or running, and gives its blocks back', async () => {
  const { sampler, samples } = await makeSampler(0)
  for (let session = 0; session < 30; session++) sampler.add(session, makeOrder(session, 0))
  await sampler.step({ admit: true })
  for (let session = 0; session < 30; session++) sampler.abort(session)
  expect(sampler.hasWork).toBe(false)
  expect([...samples.values()].every(sample => sample.finish === 'abort')).toBe(true)
  const lengths = new Set([...samples.values()].map(sample => sample.ids.length))
  expect(lengths).toEqual(new Set([0, 1]))
  sampler.forget()
  sampler.add(99, { ...makeOrder(1, 0), maxTokens: 65 })
  while (sampler.hasWork) await sampler.step({ admit: true })
  expect(samples.get(99)!.ids).toHaveLength(65)
})

it('computes a prompt again that an aborted request of a session left half done', async () => {
  const { sampler, samples } = await makeSampler(2 ** 22, { ...shape, context: 400 })
  const order = { ...makeOrder(1, 0), prompt: new Int32Array(300).fill(5), maxTokens: 2 }
  sampler.add(1, order)
  await sampler.step({ admit: true })
  sampler.abort(1)
  sampler.add(2, order)
  for (let step = 0; step < 10; step++) await sampler.step({ admit: true })
  expect(samples.get(2)).toMatchObject({ finish: 'length', cachedTokens: 128 })
})
