import { statSync } from 'node:fs'
import type { Group } from '../src/base/core/group.ts'
import type { GroupId, TaskId, TreeId } from '../src/base/core/ids.ts'
import { plainSampling } from '../src/base/core/policy.ts'
import { given, sampled } from '../src/base/core/segment.ts'
import { type Gradable, plainTrajectory } from '../src/base/core/trajectory.ts'
import { plantTree, root, type Tree } from '../src/base/core/tree.ts'
import { runPaths } from '../src/run/store/run-folder.ts'
import { openRunWriter } from '../src/run/store/store.ts'

const TURNS = 16
const SAMPLED = 512
const OBSERVED = 512
const MEMBERS = 8

/** Trees of 16,000 tokens, as agents with long observations leave them. */
function makeTree(id: string): Tree {
  const task = id.slice(0, id.lastIndexOf('/')) as TaskId
  const tree = plantTree({
    id: id as TreeId,
    task,
    member: 0,
    seed: 1,
    sampling: plainSampling,
    tools: [],
    renderer: 'bench',
  })
  let place = tree.append(root, given('prompt', new Int32Array(1000).fill(7)))
  const version = { from: 1, to: 1 }
  for (let turn = 0; turn < TURNS; turn++) {
    const ids = new Int32Array(SAMPLED).fill(turn)
    place = tree.append(place, sampled({ ids, logprobs: new Float32Array(SAMPLED), version }))
    place = tree.append(place, given('observed', new Int32Array(OBSERVED)))
  }
  tree.end(
    plainTrajectory({
      id: `${id}/0` as Gradable['id'],
      end: place,
      outcome: { kind: 'completed' },
      messages: [{ role: 'user', content: 'What was asked, in a sentence or two.' }],
      usage: { sampled: TURNS * SAMPLED, prompt: 1000 },
    }),
  )
  return tree
}

/** Writes a journal of so many gigabytes; gives its groups. */
export async function writeLongRun(folder: string, gigabytes: number): Promise<number> {
  const { journal } = runPaths(folder)
  await using writer = await openRunWriter(folder)
  let groups = 0
  for (; groups === 0 || statSync(journal).size < gigabytes * 1e9; groups++) {
    const id = `task/${groups}` as GroupId
    const members = Array.from({ length: MEMBERS }, (_, member) => {
      const tree = makeTree(`${id}/${member}`)
      const reward = { total: member % 2, parts: [] }
      const trajectory = tree.trajectories[0] as Gradable
      return { tree, trajectory, reward, dropped: null, advantage: 0, weight: 1 }
    })
    for (const { tree } of members) await writer.writeTree(tree)
    const task = id as string as TaskId
    const group: Group = { id, task, members, unscored: [] }
    await writer.writeGroup(group, { id: task, data: { question: 'How many?' } }, groups)
  }
  return groups
}
