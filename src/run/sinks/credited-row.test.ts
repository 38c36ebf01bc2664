import { describe, expect, it } from 'vitest'
import { dice, randomTree } from '../../../test/random-tree.ts'
import type { Stretch } from '../../base/core/credit.ts'
import type { Group, Weighted } from '../../base/core/group.ts'
import type { GroupId, TaskId } from '../../base/core/ids.ts'
import { isGradable } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { groupRows, type MemberRow } from '../rows/row-record.ts'
import { splitByCredit } from './credited-row.ts'

const seeds = 300 * Number(process.env.ESPALIER_SOAK ?? 1)

/** A weighed group of one random tree: advantages per trajectory, per turn, or per part of a turn. */
function randomGroup(seed: number): Group {
  const tree = randomTree(seed)
  const { next, below, chance } = dice(seed + 5)
  const value = (): number => below(5) - 2
  const members = tree.trajectories.filter(isGradable).map((trajectory): Weighted => {
    const dropped = chance(0.1) ? { filter: 'f', reason: 'r', from: 'loss' as const } : null
    return {
      tree,
      trajectory,
      reward: { total: next(), parts: [] },
      dropped,
      advantage: value(),
      weight: 1 + below(3),
      ...(seed % 3 === 1 && { turns: trajectory.turns.map(value) }),
      ...(seed % 3 === 2 && { stretches: trajectory.turns.map(({ end }) => part(tree, end.node)) }),
    }
  })
  function part(of: Tree, node: number): Stretch {
    const end = of.nodes[node]!.segment.ids.length
    return { node, start: below(end), end, advantage: value() }
  }
  return { id: 'g' as GroupId, task: 'task' as TaskId, members, unscored: [] }
}

/** Credit per token of a row: its advantage times its weight, where it is trained. */
function creditOf({ row }: MemberRow): readonly number[] {
  return [...row.mask].map((bit, token) => (bit ? row.advantages[token]! * row.weights[token]! : 0))
}

describe('rows of one advantage each', () => {
  it('[T5] train the same tokens once, each with its own credit', () => {
    let parted = 0
    for (let seed = 0; seed < seeds; seed++) {
      for (const source of groupRows(randomGroup(seed))) {
        const parts = splitByCredit(source)
        if (parts.length > 1) parted++
        expect(new Set(parts.map(({ credit }) => credit)).size).toBe(parts.length)
        const trained = new Uint8Array(source.row.mask.length)
        const credit = new Float64Array(source.row.mask.length)
        for (const part of parts) {
          part.mask.forEach((bit, token) => {
            if (bit === 0) return
            trained[token]!++
            credit[token] = part.credit
          })
        }
        expect(trained).toEqual(source.row.mask)
        expect([...credit]).toEqual(creditOf(source))
      }
    }
    expect(parted).toBeGreaterThan(seeds / 10)
  })
})
