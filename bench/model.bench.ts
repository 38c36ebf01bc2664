import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { CompiledKernels } from '../src/learn/model/engine/webassembly.ts'
import { loadKernel } from '../src/learn/model/kernel-file.ts'
import {
  type EmbeddedModel,
  type Kernel,
  type ModelShape,
  openModel,
  type TrainingRow,
} from '../src/learn/model/model.ts'

/** The shape measured in the notes on dependencies: 32 rows of 128 tokens, decode at batch 64. */
const reference: ModelShape = {
  vocabulary: 256,
  width: 128,
  layers: 2,
  heads: 4,
  hidden: 344,
  context: 256,
}

/** The shape that the demo trains: 256 rows of about 85 tokens, some 40 of them sampled. */
const desk: ModelShape = {
  vocabulary: 320,
  width: 64,
  layers: 3,
  heads: 4,
  hidden: 176,
  context: 256,
}

const workloads = {
  reference: { shape: reference, rows: 32, length: 128, trained: 127 },
  desk: { shape: desk, rows: 256, length: 85, trained: 40 },
} as const

/** What the notes on dependencies measured with a prototype on a quiet machine, one and two threads. */
const prototype = {
  plain: { stepMilliseconds: [606, 385], decodeTokensPerSecond: [14_600] },
  'relaxed-fma': { stepMilliseconds: [411, 236], decodeTokensPerSecond: [18_100] },
} as const

const call = { signal: new AbortController().signal }

/** Training steps and sampling of the embedded model, against plain matrix products of its shapes. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const figures: Record<string, unknown> = { prototype }
  for (const [name, workload] of Object.entries(workloads)) {
    for (const kernel of ['plain', 'relaxed-fma'] as const) {
      for (const threads of [1, 2]) {
        const measured = await measure(workload, { kernel, threads })
        const result = {
          ...measured,
          ...(name === 'reference' && against(measured, kernel, threads)),
        }
        figures[`${name}-${kernel}-${threads}`] = result
        if (!json) print(`${name} ${kernel} ${threads} thread${threads > 1 ? 's' : ''}`, result)
      }
    }
  }
  return figures
}

async function measure(
  workload: Workload,
  { kernel, threads }: { kernel: Kernel; threads: number },
): Promise<Record<string, number>> {
  const { module } = await loadKernel(kernel)
  const product = await productRate({ module, shapes: productShapes(workload.shape), threads })
  await using model = await openModel({ shape: workload.shape, seed: 1 }, { threads, kernel })
  const step = await measureSteps(model, workload)
  const gigaflops = trainingFlops(workload) / step.milliseconds / 1e6
  return {
    stepMilliseconds: round(step.milliseconds),
    stepProcessorMilliseconds: round(step.processorMilliseconds),
    decodeTokensPerSecond: Math.round(await measureDecode(model)),
    turnTokensPerSecond: Math.round(await measureTurns(model)),
    gigaflops: round(gigaflops),
    productGigaflops: round(product),
    ratio: round(gigaflops / product),
  }
}

/** The prototype's time over ours, and our speed over its own: better above 1. */
function against(
  { stepMilliseconds, decodeTokensPerSecond }: Record<string, number>,
  kernel: keyof typeof prototype,
  threads: number,
): Record<string, number> {
  const known: {
    readonly [Figure in 'stepMilliseconds' | 'decodeTokensPerSecond']: readonly number[]
  } = prototype[kernel]
  const [step, decode] = [
    known.stepMilliseconds[threads - 1],
    known.decodeTokensPerSecond[threads - 1],
  ]
  return {
    ...(step && { stepAgainstPrototype: round(step / stepMilliseconds!) }),
    ...(decode && { decodeAgainstPrototype: round(decodeTokensPerSecond! / decode) }),
  }
}

function print(title: string, result: Record<string, number>): void {
  const words = Object.entries(result).map(([name, value]) => `${name} ${value}`)
  console.log(`${title.padEnd(34)} ${words.join('  ')}`)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

interface Workload {
  readonly shape: ModelShape
  readonly rows: number
  readonly length: number
  readonly trained: number
}

function makeRows({ shape, rows, length, trained }: Workload): TrainingRow[] {
  return Array.from({ length: rows }, (_, row) => ({
    ids: Int32Array.from({ length }, (_, at) => (row * 31 + at * 7 + at * at) % shape.vocabulary),
    mask: new Uint8Array(length).fill(1, length - trained),
    temperature: 1,
  }))
}

/** The fastest of several training steps (forward, backward, AdamW), and its processor time. */
async function measureSteps(model: EmbeddedModel, workload: Workload) {
  const rows = makeRows(workload)
  const share = 1 / (workload.rows * workload.trained)
  let best = { milliseconds: Number.POSITIVE_INFINITY, processorMilliseconds: 0 }
  for (let step = 0; step < 6; step++) {
    const start = performance.now()
    const before = process.cpuUsage()
    await model.gradient(rows, ({ mask }) => {
      return { logprobGradient: Float64Array.from(mask, wanted => -wanted * share) }
    })
    await model.applyGradient({ learningRate: 1e-4, clip: 1 })
    const milliseconds = performance.now() - start
    const { user, system } = process.cpuUsage(before)
    const processorMilliseconds = (user + system) / 1000
    if (milliseconds < best.milliseconds) best = { milliseconds, processorMilliseconds }
  }
  return best
}

/** Sampled tokens per second with 64 prompts of 16 tokens at once. */
async function measureDecode(model: EmbeddedModel): Promise<number> {
  const sampled = async (seed: number) => {
    const prompt = Int32Array.from({ length: 16 }, (_, at) => (seed * 5 + at) % 200)
    const request = { prompt, maxTokens: 96, temperature: 1, stop: [], seed }
    return (await model.sample(request, call)).ids.length
  }
  let best = 0
  for (let round = 0; round < 3; round++) {
    const start = performance.now()
    const counts = await Promise.all(
      Array.from({ length: 64 }, (_, index) => sampled(round * 64 + index)),
    )
    const tokens = counts.reduce((sum, count) => sum + count, 0)
    best = Math.max(best, (tokens / (performance.now() - start)) * 1000)
  }
  return best
}

/**
 * Sampled tokens per second in short rollouts as the desk has them: 256 at once, groups of 8 with
 * one prompt, 5 turns of 8 sampled and 6 observed tokens each.
 */
async function measureTurns(model: EmbeddedModel): Promise<number> {
  const rollout = async (index: number) => {
    const task = index >> 3
    let ids = Int32Array.from({ length: 24 }, (_, at) => (at < 12 ? at : (task * 3 + at) % 200))
    let sampled = 0
    for (let turn = 0; turn < 5; turn++) {
      const request = { prompt: ids, maxTokens: 8, temperature: 1, stop: [], seed: index }
      const answer = await model.sample({ ...request, session: `${index}` }, call)
      sampled += answer.ids.length
      ids = Int32Array.of(...ids, ...answer.ids, 1, 2, 3, turn, task % 200, 6)
    }
    return sampled
  }
  const start = performance.now()
  const counts = await Promise.all(Array.from({ length: 256 }, (_, index) => rollout(index)))
  const tokens = counts.reduce((sum, count) => sum + count, 0)
  return (tokens / (performance.now() - start)) * 1000
}

/** Multiplications and additions of a step: three passes over every weight, and attention. */
function trainingFlops({ shape, rows, length, trained }: Workload): number {
  const { width, hidden, layers, vocabulary } = shape
  const layer = 4 * width * width + 3 * width * hidden
  const tokens = rows * (length - 1)
  const attention = rows * layers * 4 * width * ((length - 1) * length) * 0.5
  return 6 * tokens * layers * layer + 6 * rows * trained * vocabulary * width + 3 * attention
}

/**
 * Billions of operations per second of the plain product alone, on the model's own shapes and on as
 * many threads at once as the model has.
 */
async function productRate(options: ProductOptions & { threads: number }): Promise<number> {
  const rates = Array.from({ length: options.threads }, async () => {
    const worker = new Worker(`(${measureProducts})(require('node:worker_threads'))`, {
      eval: true,
      workerData: options,
    })
    const [rate] = (await once(worker, 'message')) as [number]
    return rate
  })
  return (await Promise.all(rates)).reduce((sum, rate) => sum + rate, 0)
}

interface ProductOptions {
  readonly module: CompiledKernels
  readonly shapes: readonly (readonly [number, number])[]
}

function productShapes({ width, hidden, vocabulary }: ModelShape): [number, number][] {
  return [
    [width, 3 * width],
    [width, width],
    [width, 2 * hidden],
    [hidden, width],
    [width, vocabulary],
  ]
}

/** Runs in a worker, from its source: it may use nothing but its argument. */
function measureProducts({ parentPort, workerData }: typeof import('node:worker_threads')): void {
  const { module, shapes } = workerData as ProductOptions
  const { WebAssembly } = globalThis as unknown as { WebAssembly: WebAssemblyParts }
  const memory = new WebAssembly.Memory({ initial: 256, maximum: 65_536, shared: true })
  const { exports } = new WebAssembly.Instance(module, { env: { memory, abort() {} } })
  const [rows, a, b, c] = [252, 2 ** 16, 2 ** 22, 2 ** 23]
  let best = 0
  for (let round = 0; round < 4; round++) {
    const start = performance.now()
    let operations = 0
    while (performance.now() - start < 250) {
      for (const [inner, columns] of shapes) {
        exports.project(a, b, c, rows, inner, columns, 0)
        operations += 2 * rows * inner * columns
      }
    }
    best = Math.max(best, operations / (performance.now() - start) / 1e6)
  }
  parentPort?.postMessage(best)
}

interface WebAssemblyParts {
  readonly Memory: new (options: object) => object
  readonly Instance: new (
    module: object,
    imports: object,
  ) => { exports: { project(...numbers: number[]): void } }
}
