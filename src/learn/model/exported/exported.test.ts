import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { byteTokenizer } from '../../../../test/byte-tokenizer.ts'
import { writeWhole } from '../../../base/core/files/whole-file.ts'
import { adapterMaps } from '../adapter.ts'
import { baseModel } from '../embedded.ts'
import { openGguf } from '../gguf/gguf-file.ts'
import { type GgufType, ggufOf } from '../gguf/write-gguf.ts'
import { type EmbeddedModel, openModel } from '../model.ts'
import { encode, toHalf } from './numbers.ts'
import { openExported } from './open-exported.ts'
import { type FolderType, writeFolder } from './write-folder.ts'

const fixtures = fileURLToPath(new URL('../../../../test/fixtures/pretrained/', import.meta.url))
const call = { signal: new AbortController().signal }
const ids = Int32Array.from({ length: 60 }, (_, at) => 3 + ((at * 31 + at * at) % 90))
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exported-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** A fixture that has learned for a step: its adapter's folder, and what it scores. */
async function trained(family: string) {
  const base = join(folder, `${family}-base`)
  await cp(join(fixtures, family), base, { recursive: true })
  const source = join(base, 'config.json')
  // A GGUF file is read with the positions of every published Llama 3.
  const config = (await readFile(source, 'utf8')).replace(
    /("original_max_position_embeddings": )32(.*"llama3")/s,
    '$18192$2',
  )
  await writeFile(source, config)
  for (const [name, text] of Object.entries(byteTokenizer)) await writeFile(join(base, name), text)
  await using model = await openModel({ folder: base }, { threads: 1 })
  await model.adapt({ rank: 3, alpha: 12, targets: adapterMaps.slice(1) }, { seed: 1 })
  const row = { ids, mask: Uint8Array.from(ids, (_, at) => Number(at > 20)), temperature: 1 }
  for (let step = 0; step < 2; step++) {
    await model.gradient([row], ({ mask }) => ({
      logprobGradient: Float64Array.from(mask, wanted => -wanted),
    }))
    await model.applyGradient({ learningRate: 0.05, clip: 1 })
  }
  const adapter = join(folder, `${family}-adapter`)
  await model.save(adapter)
  return { adapter, scores: await scores(model) }
}

async function scores(model: EmbeddedModel): Promise<Float32Array> {
  return (await model.score(ids, 1, { temperature: 1 }, call)).logprobs
}

function expectNear(found: Float32Array, wanted: Float32Array, bound: number): void {
  found.forEach((each, at) => {
    expect(Math.abs(each - wanted[at]!)).toBeLessThan(bound)
  })
}

async function exportGguf(path: string, type: GgufType): Promise<string> {
  using model = await openExported(path)
  const out = join(folder, `${model.name}-${type}.gguf`)
  await writeWhole(out, ggufOf(model, type))
  return out
}

async function exportFolder(path: string, type: FolderType): Promise<string> {
  using model = await openExported(path)
  const out = join(folder, `${model.name}-${type}`)
  await writeFolder(out, model, type)
  return out
}

async function scoresOf(path: string): Promise<Float32Array> {
  await using model = await openModel({ folder: path }, { threads: 1 })
  return await scores(model)
}

it.each(['llama', 'llama-biased', 'qwen2', 'qwen3'])(
  'works the adapter into %s, whose log-probabilities stay in a folder and in a GGUF file',
  async family => {
    const { adapter, scores } = await trained(family)
    expectNear(await scoresOf(await exportFolder(adapter, 'f32')), scores, 2e-5)
    const exact = await scoresOf(await exportGguf(adapter, 'f32'))
    expectNear(exact, scores, 2e-5)
    const half = await exportGguf(adapter, 'f16')
    expectNear(await scoresOf(half), scores, 0.02)
    expectNear(await scoresOf(half), await scoresOf(await exportFolder(adapter, 'f16')), 1e-3)
    expectNear(await scoresOf(await exportGguf(adapter, 'q8_0')), scores, 0.15)
    expectNear(await scoresOf(await exportFolder(adapter, 'bf16')), scores, 0.15)
  },
)

it('takes the tokenizer along into a GGUF file, and a GGUF file back into a folder', async () => {
  const { adapter } = await trained('qwen2')
  const file = await exportGguf(adapter, 'f32')
  using model = openGguf(file)
  const read = JSON.parse(model.files().get('tokenizer.json')!)
  expect(read.model.vocab['!']).toBe(0)
  expect(read.model.merges).toEqual(['! "'])
  expect(read.added_tokens).toMatchObject([{ id: 99, content: '<end>', special: true }])
  const back = await exportFolder(file, 'f32')
  expect(await scoresOf(back)).toEqual(await scoresOf(file))
  const config = JSON.parse(await readFile(join(back, 'config.json'), 'utf8'))
  expect(config).toMatchObject({ architectures: ['Qwen2ForCausalLM'], torch_dtype: 'float32' })
})

it('writes the model that is trained whole with every word of its vocabulary', async () => {
  const file = await exportGguf(baseModel, 'f32')
  const found = await readFile(file)
  expect(found.includes('tokenizer.ggml.tokens')).toBe(true)
  using written = openGguf(file)
  using source = await openExported(baseModel)
  const name = 'model.layers.0.self_attn.q_proj.weight'
  const [wanted, read] = [new Float32Array(4096), new Float32Array(4096)]
  source.weights.read(name, 0, wanted)
  written.weights.read(name, 0, read)
  expect(read).toEqual(wanted)
})

it.each([
  ['mistral', 'sliding windows'],
  ['gemma', 'kind gemma are not written'],
])('refuses to write %s as GGUF: %s', async (family, problem) => {
  const { adapter } = await trained(family)
  await expect(exportGguf(adapter, 'f32')).rejects.toThrow(problem)
})

it('refuses a tokenizer that GGUF has no name for, and an adapter of another base', async () => {
  const { adapter } = await trained('llama')
  const path = join(folder, 'llama-base', 'tokenizer.json')
  const strange = {
    ...JSON.parse(byteTokenizer['tokenizer.json']),
    pre_tokenizer: { type: 'Whitespace' },
  }
  await writeFile(path, JSON.stringify(strange))
  await expect(exportGguf(adapter, 'f32')).rejects.toThrow('no name for')
  await rm(path)
  await expect(exportGguf(adapter, 'f32')).rejects.toThrow('no tokenizer.json')
  await cp(join(fixtures, 'qwen3'), join(folder, 'llama-base'), { recursive: true })
  await expect(exportGguf(adapter, 'f32')).rejects.toThrow('made for another base')
})

it('rounds to the nearest half, ties to even', () => {
  const halfOf = (value: number) => toHalf(new Uint32Array(new Float32Array([value]).buffer)[0]!)
  expect([0, -0, 1, -2, 65504, 1e9].map(halfOf)).toEqual([
    0, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x7bff,
  ])
  expect([2 ** -24, 2 ** -25, 3 * 2 ** -25, 2 ** -14].map(halfOf)).toEqual([1, 0, 2, 0x400])
  expect([1 + 2 ** -11, 1 + 3 * 2 ** -11, 1 + 2 ** -11 + 2 ** -20].map(halfOf)).toEqual([
    0x3c00, 0x3c02, 0x3c01,
  ])
  const block = encode(
    Float32Array.from({ length: 32 }, (_, at) => at - 16),
    'q8_0',
  )
  expect([block.length, (block[2]! << 24) >> 24, block[2 + 16]]).toEqual([34, -127, 0])
})
