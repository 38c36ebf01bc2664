// Small pretrained models on a graphics card beside the same on the processor, as one JSON object. A program of its
// own, since a driver is chosen before a program starts.
import { fileURLToPath } from 'node:url'
import { seedOf } from '../../src/base/math/random.ts'
import { adapterMaps } from '../../src/learn/model/adapter.ts'
import { Sampler } from '../../src/learn/model/engine/sampler.ts'
import { findCard } from '../../src/learn/model/gpu/card.ts'
import { openCardEngine } from '../../src/learn/model/gpu/engine.ts'
import { type DeviceName, openModel, type TrainingRow } from '../../src/learn/model/model.ts'
import { readPretrained } from '../../src/learn/model/pretrained/source.ts'
import type { SampleNews } from '../../src/learn/model/protocol.ts'

const fixtures = fileURLToPath(new URL('../fixtures/pretrained/', import.meta.url))
const call = { signal: new AbortController().signal }

/** Attempts at two tasks: rows that begin alike. */
const rows: readonly TrainingRow[] = Array.from({ length: 4 }, (_, row) => {
  const ids = Int32Array.from({ length: 50 }, (_, at) => {
    const branch = at < 25 ? 0 : at < 40 ? row % 2 : row
    return 3 + ((at * 31 + branch * 17 + at * at) % 90)
  })
  const mask = Uint8Array.from(ids, (_, at) => Number(at >= 20))
  return { ids, mask, temperature: row === 2 ? 0.7 : 1 }
})
const prompt = rows[0]!.ids.slice(0, 30)

/** Samples, a step of LoRA, and what the model scores after them. */
async function whole(family: string, device: DeviceName) {
  await using model = await openModel({ folder: `${fixtures}${family}` }, { threads: 1, device })
  const ways =
    family === 'llama' ? [{}, { minP: 0.2 }, { temperature: 0 }, { topP: 0.2 }, { topK: 5 }] : []
  const draw = async (way: object, seed: number) => {
    const request = { prompt, maxTokens: 3, temperature: 1, stop: [], seed, topLogprobs: 5 }
    const { ids, logprobs, topLogprobs } = await model.sample({ ...request, ...way }, call)
    return { way, ids: [...ids], logprobs: [...logprobs], top: topLogprobs }
  }
  const samples = await Promise.all(ways.map(draw))
  const first = await model.score(rows[1]!.ids, 1, { temperature: 1 }, call)
  await model.adapt({ rank: 3, alpha: 6, targets: adapterMaps }, { seed: 1 })
  await model.gradient(rows, ({ mask }) => ({
    logprobGradient: Float64Array.from(mask, (wanted, at) => -wanted * Math.cos(at)),
    entropyGradient: Float64Array.from(mask, wanted => 0.1 * wanted),
  }))
  const { gradientNorm: norm } = await model.applyGradient({ learningRate: 3e-3, clip: 1 })
  const after = await model.score(rows[1]!.ids, 1, { temperature: 1 }, call)
  const scored = [first.logprobs, first.entropies, after.logprobs, after.entropies]
  return { device: model.device, samples, norm, scored: scored.flatMap(each => [...each]) }
}

/** What is computed of some families on one device. */
export type Whole = Awaited<ReturnType<typeof whole>>

/** What this program prints. */
export interface OnCard {
  readonly families: Readonly<Record<string, { readonly cpu: Whole; readonly gpu: Whole }>>
  /** What `auto` takes, since the processor plays the card. */
  readonly auto: string
  /** A piece of work with a card that is lost on the way, and with one that is not. */
  readonly lost: Awaited<ReturnType<typeof lost>>
  readonly kept: Awaited<ReturnType<typeof lost>>
}

/** Some samples and a step, with a card that is lost in the middle or not; and what it scores. */
async function lost(isLost: boolean) {
  const path = `${fixtures}llama`
  const { shape } = await readPretrained(path)
  // Arrays so small that weights are cut.
  const find = async () => ({ ...(await findCard())!, largest: 2048 })
  const told: string[] = []
  const tell = (text: string) => void told.push(text)
  const engine = await openCardEngine({ path, shape, found: await find(), find, tell })
  const lose = () => {
    if (isLost) engine.card.close()
  }
  const { logprobs: scored } = await engine.learner.forward([rows[1]!], { keep: false })
  await engine.learner.adapt({
    shape: { rank: 2, alpha: 4, targets: adapterMaps },
    factors: { seed: 2 },
  })
  const samples = new Map<number, SampleNews>()
  const sampler = new Sampler({
    stepper: engine.stepper,
    tell: news => news.kind === 'sampled' && samples.set(news.id, news.sample),
    version: () => 0,
  })
  for (const id of [1, 2]) {
    const limits = { topP: 1, topK: 0, minP: 0, stop: [], topLogprobs: 0, stream: false }
    sampler.add(id, { prompt, maxTokens: 3, temperature: 1, seed: seedOf(id), ...limits })
  }
  for (let step = 0; sampler.hasWork; step++) {
    if (step === 1) lose()
    await sampler.step({ admit: true })
  }
  const gradients = (count: number) => new Float32Array(count).fill(-1)
  for (const row of rows.slice(0, 2)) {
    const { logprobs } = await engine.learner.forward([row], { keep: true })
    if (row === rows[1]) lose()
    const slopes = gradients(logprobs.length)
    await engine.learner.backward({ logprobs: slopes, entropies: new Float32Array(slopes.length) })
  }
  const order = { learningRate: 0.01, clip: 1, weightDecay: 0, beta1: 0.9, beta2: 0.95 }
  const norm = await engine.learner.update({ ...order, epsilon: 1e-8, warmup: 1 })
  const drawn = [...samples.values()].map(({ ids }) => [...ids])
  engine.close()
  return { drawn, norm, told, scored: [...scored] }
}

const families: Record<string, { cpu: Whole; gpu: Whole }> = {}
/** All others take long: their parts are tried with the full counts. */
const others = process.env.ESPALIER_SOAK ? ['gemma', 'qwen3', 'llama-biased', 'mistral'] : []
for (const family of ['llama', 'qwen2-window', ...others]) {
  families[family] = { cpu: await whole(family, 'cpu'), gpu: await whole(family, 'gpu') }
}
await using auto = await openModel({ folder: `${fixtures}llama` }, { threads: 1, device: 'auto' })
const [withLoss, without] = [await lost(true), await lost(false)]
const answer: OnCard = { families, auto: auto.device, lost: withLoss, kept: without }
console.log(JSON.stringify(answer))
process.exit(0)
