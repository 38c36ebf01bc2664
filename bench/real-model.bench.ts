// A pretrained model inside beside PyTorch in turns: `npm run bench -- real-model --model=DIR [--threads=N]`,
// with ESPALIER_PYTHON naming a Python that has torch, transformers and peft; with `--gguf=FILE` and ESPALIER_LLAMA_CPP
// naming a folder that has node-llama-cpp, llama.cpp samples and reads beside them.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { adapterMaps } from '../src/learn/model/adapter.ts'
import { type EmbeddedModel, openModel, type TrainingRow } from '../src/learn/model/model.ts'

/** What is done, with sizes that both sides use. */
const work = {
  decode: { rows: 32, prompt: 175, tokens: 24 },
  single: { prompt: 64, tokens: 24 },
  prefill: { rows: 8, prompt: 250 },
  learn: { rows: 8, length: 200, trained: 99, rank: 8 },
} as const

/** Tokens per second of the clock, and per second of processor time: the second bears a busy machine. */
interface Rate {
  readonly clock: number
  readonly processor: number
}

type Rates = Readonly<Record<'decode32' | 'decode1' | 'prefill' | 'learn', Rate>>

const call = { signal: new AbortController().signal }

export async function bench({ json }: { json: boolean }): Promise<object> {
  const { values } = parseArgs({
    args: process.argv.slice(2),
    strict: false,
    options: {
      model: { type: 'string' },
      threads: { type: 'string' },
      gguf: { type: 'string' },
    },
  })
  if (typeof values.model !== 'string') {
    console.log(
      'real-model is skipped: name a folder, as `npm run bench -- real-model --model=DIR`',
    )
    return {}
  }
  const threads = Number(values.threads ?? 2)
  const ours: Rates[] = []
  const theirs: Rates[] = []
  let missing: string | undefined
  for (let turn = 0; turn < 2; turn++) {
    ours.push(await measureOurs(values.model, threads))
    const found = measureTheirs(values.model, threads)
    if (typeof found === 'string') missing = found
    else theirs.push(found)
  }
  const llamaCpp =
    typeof values.gguf === 'string' ? measureLlamaCpp(values.gguf, threads) : undefined
  const trie = await measureTrie(values.model, threads)
  if (!json) print(ours, theirs, missing)
  if (!json)
    console.log(`64 attempts in 8 groups: ${trie.tokens} of ${trie.of} tokens are computed`)
  if (!json && llamaCpp) console.log(`llama.cpp: ${llamaCppWords(llamaCpp)}`)
  return {
    threads,
    ours,
    theirs,
    trie,
    ...(llamaCpp && { llamaCpp }),
    ...(missing !== undefined && { missing }),
  }
}

async function timed(tokens: number, run: () => Promise<unknown>): Promise<Rate> {
  const before = process.cpuUsage()
  const start = performance.now()
  await run()
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(before)
  return { clock: tokens / seconds, processor: (tokens * 1e6) / (user + system) }
}

/** Some ids; equal seeds give equal ones. */
function makeIds(seed: number, length: number): Int32Array {
  return Int32Array.from(
    { length },
    (_, at) => 100 + ((seed * 7919 + at * 1047 + at * at * 31) % 40_000),
  )
}

function sample(model: EmbeddedModel, prompt: Int32Array, maxTokens: number, seed: number) {
  return model.sample({ prompt, maxTokens, temperature: 1, stop: [], seed }, call)
}

async function measureOurs(folder: string, threads: number): Promise<Rates> {
  await using model = await openModel({ folder }, { threads })
  const { decode, single, prefill, learn } = work
  const prompt = makeIds(1, decode.prompt)
  await sample(model, prompt, 1, 0)
  const decode32 = await timed(decode.rows * decode.tokens, () =>
    Promise.all(
      Array.from({ length: decode.rows }, (_, row) => sample(model, prompt, decode.tokens, row)),
    ),
  )
  const alone = makeIds(2, single.prompt)
  await sample(model, alone, 1, 0)
  const decode1 = await timed(single.tokens, () => sample(model, alone, single.tokens, 1))
  const filled = await timed(prefill.rows * prefill.prompt, () =>
    Promise.all(
      Array.from({ length: prefill.rows }, (_, row) =>
        sample(model, makeIds(10 + row, prefill.prompt), 1, row),
      ),
    ),
  )
  await model.adapt({ rank: learn.rank, alpha: 2 * learn.rank, targets: adapterMaps })
  const rows = Array.from({ length: learn.rows }, (_, row) =>
    makeRow(makeIds(50 + row, learn.length)),
  )
  const learned = await timed(learn.rows * learn.length, () => gradient(model, rows))
  return { decode32, decode1, prefill: filled, learn: learned }
}

function makeRow(ids: Int32Array): TrainingRow {
  const first = ids.length - work.learn.trained
  return { ids, mask: Uint8Array.from(ids, (_, at) => Number(at >= first)), temperature: 1 }
}

async function gradient(model: EmbeddedModel, rows: readonly TrainingRow[]) {
  let computed = { tokens: 0, of: 0 }
  await model.gradient(rows, numbers => {
    computed = numbers.computed
    return { logprobGradient: Float64Array.from(numbers.mask, wanted => -wanted) }
  })
  await model.applyGradient({ learningRate: 1e-4, clip: 1 })
  return computed
}

/** What a batch of 8 attempts at each of 8 tasks costs, all with one long beginning. */
async function measureTrie(folder: string, threads: number) {
  await using model = await openModel({ folder }, { threads })
  await model.adapt({ rank: 8, alpha: 16, targets: adapterMaps })
  const rows = Array.from({ length: 64 }, (_, row) => {
    const ids = [...makeIds(1, 150), ...makeIds(90 + (row >> 3), 20), ...makeIds(200 + row, 20)]
    const mask = Uint8Array.from(ids, (_, at) => Number(at >= 170))
    return { ids: Int32Array.from(ids), mask, temperature: 1 }
  })
  return await gradient(model, rows)
}

type LlamaCppRates = Omit<Rates, 'learn'>

/** The rates of llama.cpp, which learns nothing. */
function measureLlamaCpp(gguf: string, threads: number): LlamaCppRates | string {
  const folder = process.env.ESPALIER_LLAMA_CPP
  if (folder === undefined) return 'name a folder with node-llama-cpp in ESPALIER_LLAMA_CPP'
  const script = fileURLToPath(new URL('peers/theirs/real-model-llama-cpp.mjs', import.meta.url))
  const input = JSON.stringify({ gguf, threads, ...work })
  const run = spawnSync(process.execPath, [script, folder], { input, encoding: 'utf8' })
  if (run.status !== 0) return run.stderr.trim().split('\n').at(-1) ?? 'it failed'
  return JSON.parse(run.stdout.trim().split('\n').at(-1)!) as LlamaCppRates
}

function llamaCppWords(rates: LlamaCppRates | string): string {
  if (typeof rates === 'string') return rates
  return (['decode32', 'decode1', 'prefill'] as const)
    .map(name => `${name} ${rates[name].clock.toFixed(1)} (${rates[name].processor.toFixed(1)})`)
    .join(', ')
}

/** PyTorch's rates, or why there are none. */
function measureTheirs(folder: string, threads: number): Rates | string {
  const python = process.env.ESPALIER_PYTHON ?? 'python3'
  const script = fileURLToPath(new URL('peers/theirs/real_model.py', import.meta.url))
  const input = JSON.stringify({ folder, threads, ...work })
  const run = spawnSync(python, [script], { input, encoding: 'utf8' })
  if (run.error) return `no ${python}: name one in ESPALIER_PYTHON`
  if (run.status !== 0) return run.stderr.trim().split('\n').at(-1) ?? `${python} failed`
  return JSON.parse(run.stdout.trim().split('\n').at(-1)!) as Rates
}

function print(
  ours: readonly Rates[],
  theirs: readonly Rates[],
  missing: string | undefined,
): void {
  console.log(
    'tokens/s                  ours   PyTorch float32   share   (per second of processor time)',
  )
  for (const name of ['decode32', 'decode1', 'prefill', 'learn'] as const) {
    const best = (rates: readonly Rates[], kind: keyof Rate) =>
      Math.max(...rates.map(rate => rate[name][kind]))
    const cell = (rates: readonly Rates[]) => {
      if (rates.length === 0) return '-'
      return `${best(rates, 'clock').toFixed(1)} (${best(rates, 'processor').toFixed(1)})`
    }
    const share =
      theirs.length === 0
        ? ''
        : `${(best(ours, 'clock') / best(theirs, 'clock')).toFixed(2)} (${(best(ours, 'processor') / best(theirs, 'processor')).toFixed(2)})`
    console.log(
      `${name.padEnd(14)} ${cell(ours).padStart(18)} ${cell(theirs).padStart(18)}   ${share}`,
    )
  }
  if (missing !== undefined) console.log(`PyTorch: ${missing}`)
}
