import { cp, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { adapterMaps } from '../adapter.ts'
import { copyModel, type EmbeddedModel, openModel, type TrainingRow } from '../model.ts'

const fixtures = fileURLToPath(new URL('../../../../test/fixtures/pretrained/', import.meta.url))
const call = { signal: new AbortController().signal }
const adapter = { rank: 4, alpha: 8, targets: adapterMaps }
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'adapter-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

const open = (family: string, threads = 1) =>
  openModel({ folder: join(fixtures, family) }, { threads })

/** Attempts at two tasks: rows that begin alike. */
function makeRows(): TrainingRow[] {
  return Array.from({ length: 12 }, (_, row) => {
    const ids = Int32Array.from({ length: 60 }, (_, at) => {
      const branch = at < 25 ? 0 : at < 40 ? row % 2 : row
      return 3 + ((at * 31 + branch * 17 + at * at) % 90)
    })
    return { ids, mask: Uint8Array.from(ids, (_, at) => Number(at >= 40)), temperature: 1 }
  })
}

async function train(model: EmbeddedModel, steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) {
    await model.gradient(makeRows(), ({ mask }) => ({
      logprobGradient: Float64Array.from(mask, wanted => -wanted / 240),
    }))
    await model.applyGradient({ learningRate: 0.01, clip: 1 })
  }
}

async function likelihood(model: EmbeddedModel): Promise<Float32Array> {
  const { logprobs } = await model.score(makeRows()[0]!.ids, 40, { temperature: 1 }, call)
  return logprobs
}

const mean = (numbers: Float32Array) =>
  numbers.reduce((sum, each) => sum + each, 0) / numbers.length

it('learns by its adapter, which changes nothing at first; samples follow', async () => {
  await using model = await open('llama')
  const before = await likelihood(model)
  await model.adapt(adapter)
  expect(await likelihood(model)).toEqual(before)
  await train(model, 6)
  expect(mean(await likelihood(model))).toBeGreaterThan(mean(before) + 0.5)
  const prompt = makeRows()[0]!.ids.slice(0, 30)
  const drawn = await model.sample(
    { prompt, maxTokens: 20, temperature: 1, stop: [], seed: 1 },
    call,
  )
  expect(drawn.version).toBe(6)
  const ids = Int32Array.from([...prompt, ...drawn.ids])
  const scored = await model.score(ids, 30, { temperature: 1 }, call)
  expect(drawn.logprobs).toEqual(scored.logprobs)
})

it('is kept as PEFT keeps it, and goes on where it was, bit for bit on any threads', async () => {
  await using whole = await open('qwen3', 2)
  await whole.adapt(adapter)
  await train(whole, 2)
  const here = join(folder, 'resumed')
  await whole.save(here)
  await whole.saveOptimizer(here)
  const config = JSON.parse(await readFile(join(here, 'adapter_config.json'), 'utf8'))
  expect(config).toMatchObject({ peft_type: 'LORA', r: 4, lora_alpha: 8 })
  await using resumed = await openModel({ folder: here }, { threads: 1 })
  expect(resumed.adapter).toEqual(adapter)
  expect(await likelihood(resumed)).toEqual(await likelihood(whole))
  await resumed.loadOptimizer(here)
  await train(whole, 2)
  await train(resumed, 2)
  expect(await likelihood(resumed)).toEqual(await likelihood(whole))
  await using copy = await copyModel(resumed)
  expect(await likelihood(copy)).toEqual(await likelihood(whole))
})

it('computes shared beginnings once', async () => {
  await using model = await open('llama')
  await model.adapt(adapter)
  await model.gradient(makeRows(), ({ mask, computed }) => {
    // 25 tokens of all, 15 of each half, and 19 of each row: the last token goes nowhere.
    expect(computed).toEqual({ tokens: 25 + 2 * 15 + 12 * 19, of: 12 * 59 })
    return { logprobGradient: new Float64Array(mask.length) }
  })
})

it('says what an adapter does not fit', async () => {
  await using model = await open('llama')
  await expect(model.save(join(folder, 'none'))).rejects.toThrow('has no adapter')
  await expect(model.adapt({ ...adapter, rank: 0 })).rejects.toThrow('from 1 to 256: 0')
  await model.adapt(adapter)
  const here = join(folder, 'llama')
  await model.save(here)
  await using other = await open('qwen2')
  await expect(other.load(here)).rejects.toThrow('made for another base')
  await expect(other.load(join(fixtures, 'qwen2'))).rejects.toThrow('holds no adapter')
  const source = join(here, 'adapter_config.json')
  const config = JSON.parse(await readFile(source, 'utf8'))
  await writeFile(source, JSON.stringify({ ...config, use_dora: true }))
  await expect(openModel({ folder: here })).rejects.toThrow('use_dora is true')
  await writeFile(source, JSON.stringify({ ...config, base_model_name_or_path: 'who/what' }))
  await expect(openModel({ folder: here })).rejects.toThrow('the base model who/what, which is no')
})

it.each([
  ['config.json', { model_type: 'mamba' }, 'its model_type is "mamba"; exact are llama, mistral'],
  ['config.json', { rope_scaling: { type: 'dynamic', factor: 2 } }, 'rope_scaling is "dynamic"'],
  ['config.json', { hidden_act: 'relu' }, 'its hidden_act is "relu"'],
  ['config.json', { num_hidden_layers: 3 }, 'no tensor model.layers.2.'],
  ['config.json', { num_hidden_layers: 1 }, 'tensor model.layers.1.'],
  ['config.json', { intermediate_size: 64 }, 'its config wants [64, 32]'],
  ['config.json', { quantization_config: { bits: 4 } }, 'quantised'],
])('refuses a folder whose %s says %o', async (name, changes, message) => {
  const here = join(folder, 'changed')
  await cp(join(fixtures, 'llama'), here, { recursive: true })
  const config = JSON.parse(await readFile(join(here, name), 'utf8'))
  await writeFile(join(here, name), JSON.stringify({ ...config, ...changes }))
  await expect(openModel({ folder: here }, { threads: 1 })).rejects.toThrow(message)
})

it('refuses weights that are not numbers, and half a file', async () => {
  const here = join(folder, 'damaged')
  await cp(join(fixtures, 'llama'), here, { recursive: true })
  const path = join(here, 'model.safetensors')
  const bytes = await readFile(path)
  bytes.writeUInt16LE(0x7fc0, bytes.length - 2000)
  await writeFile(path, bytes)
  await expect(openModel({ folder: here }, { threads: 1 })).rejects.toThrow('is damaged: number')
  await truncate(path, bytes.length - 100)
  await expect(openModel({ folder: here }, { threads: 1 })).rejects.toThrow(/bytes/)
})
