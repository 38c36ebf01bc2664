// The embedded model: a training step (forward, backward, AdamW), and sampling 64 at once.
import { type ModelShape, openModel } from '../../../src/learn/model/model.ts'
import { printFigures, readWork } from './side.ts'

const work = await readWork<{
  readonly shape: ModelShape
  readonly threads: number
  readonly rows: number
  readonly length: number
}>()
const call = { signal: new AbortController().signal }
await using model = await openModel({ shape: work.shape, seed: 1 }, { threads: work.threads })
const rows = Array.from({ length: work.rows }, (_, row) => ({
  ids: Int32Array.from(
    { length: work.length },
    (_, at) => (row * 31 + at * 7 + at * at) % work.shape.vocabulary,
  ),
  mask: new Uint8Array(work.length).fill(1, 1),
  temperature: 1,
}))
const share = 1 / (work.rows * (work.length - 1))

async function step(): Promise<void> {
  await model.gradient(rows, ({ mask }) => ({
    logprobGradient: Float64Array.from(mask, wanted => -wanted * share),
  }))
  await model.applyGradient({ learningRate: 1e-4, clip: 1 })
}

async function sample(): Promise<void> {
  const one = async (seed: number): Promise<void> => {
    const prompt = Int32Array.from({ length: 16 }, (_, at) => (seed * 5 + at) % 200)
    await model.sample({ prompt, maxTokens: 96, temperature: 1, stop: [], seed }, call)
  }
  await Promise.all(Array.from({ length: 64 }, (_, seed) => one(seed)))
}

async function fastest(each: () => Promise<void>, rounds: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const start = performance.now()
    await each()
    best = Math.min(best, performance.now() - start)
  }
  return best
}

const stepMilliseconds = await fastest(step, 8)
const decode = await fastest(sample, 4)
printFigures({ stepMilliseconds, sampledPerSecond: (64 * 96 * 1000) / decode })
