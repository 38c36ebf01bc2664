import { describe, expect, it } from 'vitest'
import { dice, randomTree } from '../../test/random-tree.ts'
import { decodeFrame, encodeFrame } from './frame.ts'
import { putTexts } from './long-texts.ts'
import { treeFromFrame, treeToFrame } from './tree-frame.ts'

const store = (seed: number) => encodeFrame(treeToFrame(randomTree(seed)))

describe('frames', () => {
  it('give back random trees exactly', () => {
    for (let seed = 0; seed < 300; seed++) {
      const tree = randomTree(seed)
      const again = treeFromFrame(decodeFrame(store(seed), 0))
      expect(again.nodes).toEqual(tree.nodes)
      expect(again.trajectories).toEqual(tree.trajectories)
    }
  })

  it('refuse damage with its place and reason', () => {
    const bytes = store(2)
    const { below } = dice(7)
    for (let trial = 0; trial < 50; trial++) {
      const copy = Buffer.from(bytes)
      const at = 8 + below(bytes.length - 8)
      copy[at] = copy[at]! ^ (1 + below(255))
      expect(() => decodeFrame(copy, 77)).toThrow(
        /damaged frame at byte 77: checksum is [0-9a-f]+, not [0-9a-f]+/,
      )
    }
  })

  it('keep arrays of every kind, empty ones included', () => {
    const arrays = [
      new Int32Array(0),
      Float32Array.of(0.1),
      Float64Array.of(1e-300),
      Uint8Array.of(1, 2, 3),
    ]
    const bytes = encodeFrame({ header: { text: '\ud800 é 漢' }, arrays })
    const frame = decodeFrame(bytes, 0)
    expect(frame).toEqual({ header: { text: '\ud800 é 漢' }, arrays })
  })

  it('keep long texts as they are, each once, and leave the header alone', () => {
    const long = 'é "漢"\n\u0000'.repeat(100)
    const half = `${'x'.repeat(500)}\ud800`
    const said = { role: 'tool', content: long }
    const own = JSON.parse(`{"__proto__": ${JSON.stringify(long)}, "": null}`) as object
    const header = { said: [said, null, half], again: { ...said }, own, when: new Date(0) }
    const before = JSON.stringify(header)
    const bytes = encodeFrame({ header, arrays: [Uint8Array.of(1, 2, 3)] })
    expect(JSON.stringify(header)).toBe(before)
    expect(JSON.stringify(decodeFrame(bytes, 0).header)).toBe(before)
    expect(bytes.toString('utf8').split(long)).toHaveLength(2)
    expect(decodeFrame(encodeFrame({ header: long, arrays: [] }), 0).header).toBe(long)
  })

  it('put texts only where some were left out', () => {
    const texts = ['text']
    expect(putTexts({ a: [null] }, texts, [[['a', 0], 0]])).toEqual({ a: ['text'] })
    for (const places of [
      [[['__proto__', 'toString'], 0]],
      [[['constructor'], 0]],
      [[['a', 1], 0]],
      [[['a', 'length'], 0]],
      [[['a', 0], 7]],
      [[['a', 0], 'length']],
      [[['a', 0, 'x'], 0]],
      [['a', 0]],
      null,
    ]) {
      expect(() => putTexts({ a: [null] }, texts, places)).toThrow(TypeError)
    }
  })
})
