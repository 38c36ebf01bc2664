import { describe, expect, it } from 'vitest'
import { dice, randomTree } from '../../test/random-tree.ts'
import { DamagedFrameError, decodeFrames, encodeFrame } from './frame.ts'
import { treeFromFrame, treeToFrame } from './tree-frame.ts'

const store = (...seeds: number[]) =>
  Buffer.concat(seeds.map(seed => encodeFrame(treeToFrame(randomTree(seed)))))

function readAll(bytes: Buffer): { count: number; error: DamagedFrameError | undefined } {
  let count = 0
  try {
    for (const _ of decodeFrames(bytes)) count++
  } catch (error) {
    if (error instanceof DamagedFrameError) return { count, error }
    throw error
  }
  return { count, error: undefined }
}

describe('frames', () => {
  it('give back random trees exactly', () => {
    for (let seed = 0; seed < 300; seed++) {
      const tree = randomTree(seed)
      const [{ frame } = { frame: undefined }] = decodeFrames(encodeFrame(treeToFrame(tree)))
      const again = treeFromFrame(frame!)
      expect(again.nodes).toEqual(tree.nodes)
      expect(again.trajectories).toEqual(tree.trajectories)
    }
  })

  it('recognise a last frame that a crash tore, wherever it was torn', () => {
    const whole = store(1)
    const torn = store(2)
    for (let cut = 1; cut < torn.length; cut += 1 + Math.floor(torn.length / 50)) {
      const { count, error } = readAll(Buffer.concat([whole, torn.subarray(0, cut)]))
      expect([count, error?.isTorn, error?.offset]).toEqual([1, true, whole.length])
    }
  })

  it('refuse damage in the middle with its place and reason', () => {
    const first = store(1)
    const bytes = store(1, 2, 3)
    const { below } = dice(7)
    for (let trial = 0; trial < 50; trial++) {
      const copy = Buffer.from(bytes)
      const at = first.length + 8 + below(50)
      copy[at] = copy[at]! ^ (1 + below(255))
      const { count, error } = readAll(copy)
      expect([count, error?.isTorn, error?.offset]).toEqual([1, false, first.length])
      expect(error!.message).toMatch(
        /damaged frame at byte \d+: checksum is [0-9a-f]+, not [0-9a-f]+/,
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
    const [{ frame } = { frame: undefined }] = decodeFrames(bytes)
    expect(frame).toEqual({ header: { text: '\ud800 é 漢' }, arrays })
  })
})
