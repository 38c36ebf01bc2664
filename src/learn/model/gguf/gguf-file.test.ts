import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readModelFolder } from '@espalier/text/chat'
import { expect, it } from 'vitest'
import { openModel } from '../model.ts'
import { writeSafetensors } from '../safetensors.ts'
import { blockTypes } from './blocks.ts'
import { openGguf } from './gguf-file.ts'

const fixtures = fileURLToPath(new URL('../../../../test/fixtures/gguf/', import.meta.url))
const blocks = JSON.parse(readFileSync(`${fixtures}blocks.json`, 'utf8')) as Record<
  string,
  { readonly type: number; readonly bytes: string; readonly numbers: string }
>

it.each(Object.entries(blocks))('%s gives the numbers that the package gguf gives', (_, row) => {
  const wanted = floatsIn(Buffer.from(row.numbers, 'base64'))
  const numbers = new Float32Array(wanted.length)
  blockTypes.get(row.type)!.unpack(Buffer.from(row.bytes, 'base64'), numbers)
  expect(numbers).toEqual(wanted)
})

it.each(['llama', 'qwen2', 'qwen3'] as const)(
  'a file of %s is what a folder of it would be',
  type => {
    using model = openGguf(`${fixtures}${type}.gguf`)
    const { config, weights } = model
    expect(config).toMatchObject({
      ...{ model_type: type, vocab_size: 40, hidden_size: 64, head_dim: 16, rms_norm_eps: 1e-5 },
      ...{ num_attention_heads: 4, num_key_value_heads: 2, rope_theta: 50_000, rope_scaling: null },
      ...{ intermediate_size: 96, tie_word_embeddings: true, max_position_embeddings: 128 },
    })
    const layer = 'model.layers.0'
    const seeds: Record<string, number> = {
      'model.embed_tokens.weight': 0,
      [`${layer}.self_attn.q_proj.weight`]: 4,
      [`${layer}.self_attn.k_proj.weight`]: 5,
      [`${layer}.self_attn.o_proj.weight`]: 7,
      ...(type === 'qwen2' && { [`${layer}.self_attn.k_proj.bias`]: 12 }),
      ...(type === 'qwen3' && { [`${layer}.self_attn.q_norm.weight`]: 14 }),
    }
    for (const [name, seed] of Object.entries(seeds)) {
      const size = weights.tensors.get(name)!.shape.reduce((product, side) => product * side, 1)
      expect(readAll(weights, name, size)).toEqual(made(seed, size))
      // A piece from the middle, across rows and blocks.
      const piece = new Float32Array(Math.min(size - 5, 71))
      weights.read(name, 5, piece)
      expect(piece).toEqual(made(seed, size).subarray(5, 5 + piece.length))
    }
    const quantised = readAll(weights, `${layer}.mlp.down_proj.weight`, 64 * 96)
    const off = made(10, 64 * 96).map((value, at) => Math.abs(value - quantised[at]!))
    expect(Math.max(...off)).toBeLessThan(0.004)
  },
)

it('halves are given as they are, and only where there are some', () => {
  using model = openGguf(`${fixtures}qwen2.gguf`)
  const halves = new Uint16Array(4)
  model.weights.readHalves('model.embed_tokens.weight', 0, halves)
  expect([...halves]).toEqual([...made(0, 4)].map(toHalf))
  expect(() => model.weights.readHalves('model.norm.weight', 0, halves)).toThrow('has no halves')
})

it('the tokenizer and the template come from the file itself', async () => {
  const files = await readModelFolder(`${fixtures}llama.gguf`)
  expect(files).toMatchObject({
    ...{ name: 'llama.gguf', template: '{{ messages[0].content }}', endIds: [0] },
    config: { eos_token: '<|end|>' },
    tokenizer: { added_tokens: [{ content: '<|end|>' }, { content: '<|start|>' }] },
  })
})

it.each([
  [
    'cut in its header',
    (bytes: Buffer) => bytes.subarray(0, 300),
    /ends at byte 300, within its header/,
  ],
  ['cut in its tensors', (bytes: Buffer) => bytes.subarray(0, 20_000), /ends before the tensor/],
  [
    'of another kind',
    (bytes: Buffer) => Buffer.concat([Buffer.from('GGML'), bytes.subarray(4)]),
    /is not a GGUF file/,
  ],
  [
    'with 2^63 tensors',
    (bytes: Buffer) => put(bytes, 8, 2n ** 63n),
    /impossible number 9223372036854775808/,
  ],
  [
    'with a text of a terabyte',
    (bytes: Buffer) => put(bytes, 24, 2n ** 40n),
    /1099511627776 bytes in a text; up to 16777216/,
  ],
  [
    'of a later version',
    (bytes: Buffer) => put(bytes, 4, 9n + (BigInt(bytes.readUInt32LE(8)) << 32n)),
    /of version 9; 2 and 3/,
  ],
  [
    'of another architecture',
    (bytes: Buffer) => renamed(bytes, 'llama', 'mamba'),
    /architecture mamba; llama, qwen2, qwen3/,
  ],
  [
    'of another tensor',
    (bytes: Buffer) => renamed(bytes, 'blk.0.attn_v.weight', 'blk.0.attn_z.weight'),
    /attn_z\.weight, which no dense/,
  ],
])('a file %s is refused by name', (name, damage, problem) => {
  const path = join(
    mkdtempSync(join(tmpdir(), 'espalier-gguf-')),
    `${name.replace(/\W/g, '')}.gguf`,
  )
  writeFileSync(path, damage(readFileSync(`${fixtures}llama.gguf`)))
  expect(() => openGguf(path)).toThrow(problem)
})

function floatsIn(bytes: Buffer): Float32Array {
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
}

/** What test/python/gguf_fixtures.py wrote. */
function made(seed: number, size: number): Float32Array {
  return Float32Array.from({ length: size }, (_, at) => (((at * 7 + seed) % 13) - 6) / 8)
}

function readAll(
  weights: ReturnType<typeof openGguf>['weights'],
  name: string,
  size: number,
): Float32Array {
  const numbers = new Float32Array(size)
  weights.read(name, 0, numbers)
  return numbers
}

/** A normal half of a float that is one. */
function toHalf(value: number): number {
  const [word] = new Uint32Array(Float32Array.of(value).buffer)
  return value === 0 ? 0 : ((word! >>> 16) & 0x8000) | (((word! >>> 13) & 0x3ffff) - (112 << 10))
}

function put(bytes: Buffer, at: number, value: bigint): Buffer {
  const changed = Buffer.from(bytes)
  changed.writeBigUInt64LE(value, at)
  return changed
}

function renamed(bytes: Buffer, from: string, to: string): Buffer {
  return Buffer.from(bytes.toString('latin1').replace(from, to), 'latin1')
}

it('runs inside as a folder with its numbers does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-gguf-'))
  const path = `${fixtures}qwen3.gguf`
  {
    using opened = openGguf(path)
    const tensors = [...opened.weights.tensors].map(([name, { shape }]) => {
      const size = shape.reduce((product, side) => product * side, 1)
      return { name, shape, data: readAll(opened.weights, name, size) }
    })
    writeFileSync(join(folder, 'model.safetensors'), writeSafetensors(tensors))
    writeFileSync(join(folder, 'config.json'), JSON.stringify(opened.config))
    for (const [name, text] of opened.files()) writeFileSync(join(folder, name), text)
  }
  const scored = async (from: string): Promise<Float32Array> => {
    await using model = await openModel({ folder: from }, { threads: 1, kernel: 'plain' })
    const ids = Int32Array.of(2, 7, 11, 3, 5, 8)
    const { signal } = new AbortController()
    return (await model.score(ids, 1, { temperature: 1 }, { signal })).logprobs
  }
  expect(await scored(path)).toEqual(await scored(folder))
})
