import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { plainTree } from '../../../test/plain-tree.ts'
import type { Group } from '../../base/core/group.ts'
import type { GroupId } from '../../base/core/ids.ts'
import type { Gradable } from '../../base/core/trajectory.ts'
import { newManifest } from '../store/manifest.ts'
import { createRun, runPaths } from '../store/run-folder.ts'
import { writeReport } from './run-report.ts'
import { makeGroupsTally, makeRunTally, type RunTally } from './run-tally.ts'

function groupOf(reward: number, id = `group-${reward}`, step?: number): Group {
  const tree = plainTree({ calls: [{ tool: reward > 0.4 ? 'look' : 'ask' }] })
  const member = {
    tree,
    trajectory: tree.trajectories[0] as Gradable,
    reward: { total: reward, parts: [{ name: 'right', score: reward, weight: 1 }] },
    dropped: null,
    advantage: 0,
    weight: 1,
  }
  const named = step === undefined ? {} : { step }
  return { id: id as GroupId, task: tree.task, ...named, members: [member], unscored: [] }
}

async function begun(
  finished: number,
): Promise<{ readonly run: string; readonly tally: RunTally }> {
  const run = join(await mkdtemp(join(tmpdir(), 'espalier-tally-')), 'run')
  const lock = await createRun(run, newManifest('roll', { successAt: 0.5 }))
  await lock[Symbol.asyncDispose]()
  const tally = makeRunTally(run)
  tally.listen({ kind: 'run-start', run, command: 'roll', finished })
  return { run, tally }
}

it('gives the report of a run that was added up while it went on, without its journal', async () => {
  const { run, tally } = await begun(0)
  for (const reward of [0.1, 0.7, 0.3]) tally.listen({ kind: 'group-end', group: groupOf(reward) })
  tally.listen({ kind: 'group-end', group: groupOf(1, 'evaluation-2/a', 2) })
  // Reading it would fail.
  await writeFile(runPaths(run).journal, 'no journal at all')
  await writeReport(run, { tally: tally.whole()!, scoringSeconds: 2 })
  const written = JSON.parse(await readFile(runPaths(run).report, 'utf8'))
  expect(written).toMatchObject({
    kind: 'roll',
    groups: 3,
    success: { at: 0.5, rate: 1 / 3 },
    tools: { ask: { calls: 2 }, look: { calls: 1 } },
    evaluations: [{ step: 2, trajectories: 1, success: { rate: 1 } }],
  })
  expect(written).not.toHaveProperty('tally')
})

it('knows when it has not seen all of a run', async () => {
  const resumed = await begun(4)
  expect(resumed.tally.whole()).toBeUndefined()
  const played = await begun(0)
  played.tally.listen({ kind: 'tree-end', tree: plainTree({}), isOther: true })
  expect(played.tally.whole()).toBeUndefined()
})

it('comes to the same numbers in whatever order groups end', () => {
  const groups = [0.1, 0.2, 0.3, 0.7, 1e-9, 0.4].map(reward => groupOf(reward))
  const reportOf = (order: readonly Group[]) => {
    const tally = makeGroupsTally()
    for (const group of order) tally.add(group)
    const { slowest: _, ...report } = tally.report()
    return JSON.stringify(report)
  }
  expect(reportOf(groups.toReversed())).toBe(reportOf(groups))
})
