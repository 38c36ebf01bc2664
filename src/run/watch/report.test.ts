import { describe, expect, it } from 'vitest'
import { type PlainTree, plainTree } from '../../../test/plain-tree.ts'
import type { Group } from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Gradable } from '../../base/core/trajectory.ts'
import { makeReport } from './report.ts'
import { makeCounter, makeSlowest } from './tallies.ts'

function groupOf(
  trees: readonly (PlainTree & { readonly reward: number; readonly drop?: boolean })[],
  step?: number,
): Group {
  const members = trees.map(({ reward: total, drop, ...parts }) => {
    const tree = plainTree(parts)
    const dropped = drop ? ({ filter: 'overlong', reason: 'cut', from: 'loss' } as const) : null
    const reward = { total, parts: [{ name: 'right', score: total, weight: 1 }] }
    const trajectory = tree.trajectories[0] as Gradable
    return { tree, trajectory, reward, dropped, advantage: 0, weight: 1 }
  })
  const id = `group-${trees.length}-${step}` as GroupId
  return { id, task: members[0]!.tree.task, members, unscored: [], ...(step && { step }) }
}

function failing(message: string): Group {
  const outcome = { kind: 'failed', boundary: 'policy', message } as const
  const tree = plainTree({ outcome })
  const unscored = [{ tree, trajectory: tree.trajectories[0]!, outcome }]
  return { id: 'failing' as GroupId, task: tree.task, members: [], unscored }
}

describe('a report', () => {
  it('adds up success, rewards, outcomes, failures, filters, tools, costs and fidelity', () => {
    const builder = makeReport()
    const truncated = { kind: 'truncated', limit: 'turns' } as const
    builder.add(
      groupOf([
        { reward: 1, calls: [{ tool: 'look' }, { tool: 'look', problem: 'timeout' }] },
        { reward: 0, outcome: truncated, drop: true },
      ]),
    )
    builder.add(groupOf([{ reward: 1 }, { reward: 1 }]))
    for (let port = 1; port < 4; port++) builder.add(failing(`port ${port} is closed`))
    const report = builder.report()
    expect(report).toMatchObject({
      groups: 5,
      trees: 7,
      trajectories: 7,
      success: { rate: 0.75, at: 1 },
      reward: { mean: 0.75, parts: { right: { mean: 0.75, weight: 1 } } },
      groupsWithContrast: 1,
      outcomes: { completed: 3, 'failed in policy': 3, 'truncated by turns': 1 },
      failures: [{ where: 'failed in policy', message: 'port N is closed', count: 3 }],
      filters: { overlong: 1 },
      tools: { look: { calls: 2, problems: { timeout: 1 }, seconds: 1 } },
      tokens: { sampled: 21, prompt: 7, perTrajectory: { mean: 3, median: 3, most: 3 } },
      seconds: { policy: 7, tools: 3.5 },
      fidelity: { exact: 7 },
    })
    expect(report.success!.interval.low).toBeLessThan(0.75)
  })

  it('of nothing says so without dividing by it', () => {
    expect(makeReport().report()).toMatchObject({ groups: 0, success: null, reward: null })
  })

  it('counts stale tokens within a step, and tokens of trees that mix versions', () => {
    const at = (version: number) => ({ sampled: { version: { from: version, to: version } } })
    const builder = makeReport()
    builder.add(
      groupOf(
        [
          { reward: 1, ...at(1) },
          { reward: 0, ...at(2) },
        ],
        2,
      ),
    )
    builder.add(groupOf([{ reward: 1, ...at(2) }], 3))
    expect(builder.report().versions).toEqual({ tokens: { 1: 3, 2: 6 }, mixed: 0, stale: 3 })
  })
})

describe('tallies', () => {
  it('never grow without end', () => {
    const counter = makeCounter(3)
    for (const word of ['a', 'b', 'c', 'd', 'e', 'a']) counter.add(word)
    expect(counter.record()).toEqual({ a: 2, others: 2, b: 1, c: 1 })
    const slowest = makeSlowest(2)
    for (const seconds of [1, 5, 3, 4]) {
      slowest.add({ trajectory: String(seconds), seconds, turns: 1, sampled: 1 })
    }
    expect(slowest.list().map(({ seconds }) => seconds)).toEqual([5, 4])
  })
})
