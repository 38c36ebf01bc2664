import { expect, it } from 'vitest'
import { randomTree } from '../../../test/random-tree.ts'
import { groupRowsOf } from '../../../test/tree-rows.ts'
import { layers, routed, top, withExperts } from '../../../test/with-experts.ts'
import { treeFromFrame, treeToFrame } from '../../run/store/tree-frame.ts'
import { sampled } from './segment.ts'

it.each([
  ['one byte', 128],
  ['two bytes', 512],
])(
  '[T3] experts lie beside their tokens over bridges, forks, rewrites and the journal: %s',
  (_, count) => {
    let rows = 0
    for (let seed = 1; seed <= 20; seed++) {
      const tree = treeFromFrame(treeToFrame(withExperts(randomTree(seed), count)))
      for (const form of ['once', 'paths'] as const) {
        for (const { ids, mask, experts } of groupRowsOf(tree, form)) {
          rows++
          expect(experts!.known).toBeGreaterThanOrEqual(mask.lastIndexOf(1))
          for (let token = 0; token < experts!.known; token++) {
            const at = token * layers * top
            const told = [...experts!.data.subarray(at, at + layers * top)]
            expect(told).toEqual(routed(ids.subarray(0, token + 1), count))
          }
        }
      }
    }
    expect(rows).toBeGreaterThan(100)
  },
)

it('refuses experts that are not of its tokens', () => {
  const parts = { ids: Int32Array.of(1, 2, 3), logprobs: null, version: { from: 0, to: 0 } }
  const own = { layers, top, before: 1, data: new Uint8Array(2 * layers * top) }
  expect(() => sampled({ ...parts, experts: own })).toThrow('experts for 2 tokens, not 3')
})
