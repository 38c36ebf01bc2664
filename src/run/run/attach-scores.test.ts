import { describe, expect, it } from 'vitest'
import { randomTree } from '../../../test/random-tree.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { type Policy, plainCapabilities, type Scores } from '../../base/core/policy.ts'
import { isGradable } from '../../base/core/trajectory.ts'
import { idsTo, lengthTo, pathTo, type Tree } from '../../base/core/tree.ts'
import type { Attempt, RolloutContext } from '../../engine/rollout/attempt.ts'
import { treeFromFrame, treeToFrame } from '../store/tree-frame.ts'
import { withScorers } from './attach-scores.ts'

/** What a token is worth to the policy below: all tokens up to it, mixed. */
function numberOf(ids: Int32Array, at: number): number {
  let mixed = 7
  for (let index = 0; index <= at; index++) mixed = (mixed * 31 + ids[index]!) % 9973
  return -mixed / 16
}

function openScorer(score = numberOf, basis: Scores['basis'] = 'tempered') {
  const seen = { requests: 0, tokens: 0 }
  const policy: Policy = {
    name: 'scorer',
    capabilities: { ...plainCapabilities, score: true },
    sample: () => Promise.reject(new Error('it only scores')),
    async score(ids, from) {
      seen.requests++
      seen.tokens += ids.length - from
      const logprobs = Float32Array.from({ length: ids.length - from }, (_, index) =>
        score(ids, from + index),
      )
      return { logprobs, basis, version: { from: 0, to: 0 } }
    },
    async [Symbol.asyncDispose]() {},
  }
  return { policy, seen }
}

async function scored(tree: Tree, policy: Policy): Promise<Tree> {
  const lanes = makeLanes({ policy: 2, tools: 1, environment: 1, reward: 1 })
  const context = { lanes } as unknown as RolloutContext
  const attempt = { signal: new AbortController().signal } as Attempt
  const rolled = await withScorers(async () => tree, { teacher: policy })(context, attempt)
  return 'nodes' in rolled ? rolled : rolled[0]
}

const seeds = 40 * Number(process.env.ESPALIER_SOAK ?? 1)

describe('other policies', () => {
  it('score every sampled token of every path under exactly what stood before it', async () => {
    for (let seed = 0; seed < seeds; seed++) {
      const { policy, seen } = openScorer()
      const tree = await scored(randomTree(seed), policy)
      for (const { end } of tree.trajectories.filter(isGradable)) {
        const ids = idsTo(tree, end)
        for (const { node, start, length } of pathTo(tree, end)) {
          const { segment } = tree.nodes[node]!
          if (segment.origin !== 'sampled') continue
          const expected = Float32Array.from({ length }, (_, at) => numberOf(ids, start + at))
          expect(segment.others!.teacher!.subarray(0, length)).toEqual(expected)
        }
        expect(lengthTo(tree, end)).toBe(ids.length)
      }
      expect(seen.requests).toBeLessThanOrEqual(2 * tree.nodes.length)
      const again = treeFromFrame(treeToFrame(tree))
      expect(again.nodes).toEqual(tree.nodes)
    }
  })

  it('that cannot answer fail the attempt as data, and nothing of it is graded', async () => {
    const broken = openScorer(() => {
      throw new Error('the reference is gone')
    })
    const before = randomTree(3)
    const tree = await scored(before, broken.policy)
    before.trajectories.forEach((trajectory, index) => {
      const { outcome } = tree.trajectories[index]!
      expect(outcome.kind).toBe('failed')
      if (isGradable(trajectory)) expect(outcome).toMatchObject({ boundary: 'policy' })
    })
    expect(before.trajectories.some(isGradable)).toBe(true)
  })
})
