import { describe, expect, it } from 'vitest'
import { readCheckpoint } from '../checkpoint.ts'
import { baseModel } from '../embedded.ts'
import { writeGguf } from './write-gguf.ts'

describe('writeGguf', () => {
  it('writes every tensor once, aligned, and the words of the vocabulary', async () => {
    const checkpoint = await readCheckpoint(baseModel)
    const file = Buffer.from(writeGguf(checkpoint, 'desk'))
    expect(file.subarray(0, 4).toString()).toBe('GGUF')
    expect(file.readUInt32LE(4)).toBe(3)
    expect(Number(file.readBigUInt64LE(8))).toBe(checkpoint.tensors.length)
    const numbers = checkpoint.tensors.reduce((sum, { data }) => sum + data.byteLength, 0)
    expect(file.length).toBeGreaterThan(numbers)
    for (const name of ['blk.0.attn_q.weight', 'blk.2.ffn_down.weight', 'output_norm.weight']) {
      expect(file.includes(name)).toBe(true)
    }
    const { data } = checkpoint.tensors.find(({ name }) => name === 'model.norm.weight')!
    expect(file.includes(Buffer.from(data.buffer, data.byteOffset, data.byteLength))).toBe(true)
  })

  it('puts the rows of a head in pairs, as rotations of neighbours need them', async () => {
    const checkpoint = await readCheckpoint(baseModel)
    const { width, heads } = checkpoint.shape
    const name = 'model.layers.0.self_attn.q_proj.weight'
    const { data } = checkpoint.tensors.find(tensor => tensor.name === name)!
    const file = Buffer.from(writeGguf(checkpoint, 'desk'))
    const row = (index: number): Buffer =>
      Buffer.from(data.buffer, data.byteOffset + index * width * 4, width * 4)
    const half = width / heads / 2
    const pair = Buffer.concat([row(0), row(half), row(1), row(half + 1)])
    expect(file.includes(pair)).toBe(true)
  })
})
