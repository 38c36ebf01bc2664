// Tokens per second of llama.cpp by node-llama-cpp, sampling at temperature 1 and reading prompts:
// `node real-model-llama-cpp.mjs FOLDER < work.json`, FOLDER with node_modules/node-llama-cpp.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { gguf, threads, decode, single, prefill } = JSON.parse(readFileSync(0, 'utf8'))
const { resolve } = createRequire(join(process.argv[2], 'package.json'))
const { getLlama } = await import(pathToFileURL(resolve('node-llama-cpp')).href)
const llama = await getLlama({
  gpu: false,
  build: 'never',
  skipDownload: true,
  maxThreads: threads,
})
const model = await llama.loadModel({ modelPath: gguf })

const makeIds = (seed, length) =>
  Array.from({ length }, (_, at) => 100 + ((seed * 7919 + at * 1047 + at * at * 31) % 40_000))

async function timed(tokens, run) {
  const before = process.cpuUsage()
  const start = performance.now()
  await run()
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(before)
  return { clock: tokens / seconds, processor: (tokens * 1e6) / (user + system) }
}

/** Draws so many tokens behind a prompt; the end of a text is a token like others. */
async function draw(sequence, prompt, tokens) {
  const drawn = sequence.evaluate(prompt, { temperature: 1, yieldEogToken: true })
  for (let left = tokens; left > 0; left--) if ((await drawn.next()).done) return
}

async function open(sequences, tokens) {
  return await model.createContext({
    sequences,
    contextSize: tokens + 8,
    batchSize: 512,
    threads: { ideal: threads, min: threads },
  })
}

/** Rows that go on behind one prompt, which each has read before. */
async function measureDecode({ rows = 1, prompt, tokens }) {
  const context = await open(rows, prompt + tokens)
  const sequences = Array.from({ length: rows }, () => context.getSequence())
  const ids = makeIds(1, prompt)
  for (const sequence of sequences)
    await sequence.evaluateWithoutGeneratingNewTokens(ids.slice(0, -1))
  const rate = await timed(rows * tokens, () =>
    Promise.all(sequences.map(sequence => draw(sequence, ids.slice(-1), tokens))),
  )
  await context.dispose()
  return rate
}

async function measurePrefill({ rows, prompt }) {
  const context = await open(rows, prompt + 1)
  const sequences = Array.from({ length: rows }, () => context.getSequence())
  const rate = await timed(rows * prompt, () =>
    Promise.all(sequences.map((sequence, row) => draw(sequence, makeIds(10 + row, prompt), 1))),
  )
  await context.dispose()
  return rate
}

const [decode32, decode1] = [await measureDecode(decode), await measureDecode(single)]
const filled = await measurePrefill(prefill)
console.log(JSON.stringify({ decode32, decode1, prefill: filled }))
process.exit(0)
