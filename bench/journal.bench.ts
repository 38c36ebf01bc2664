// A long run's journal: seconds until its groups are listed, with its index and without, against
// reading its bytes. ESPALIER_JOURNAL_GB scales it (1 unless told; the promise is about 10).
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openRunReader } from '../dist/index.js'
import type { Group } from '../src/core/group.ts'
import type { GroupId, TaskId, TreeId } from '../src/core/ids.ts'
import { plainSampling } from '../src/core/policy.ts'
import { given, sampled } from '../src/core/segment.ts'
import { type Gradable, plainTrajectory } from '../src/core/trajectory.ts'
import { plantTree, root, type Tree } from '../src/core/tree.ts'
import { runPaths } from '../src/store/run-folder.ts'
import { openRunWriter } from '../src/store/store.ts'

const GIGABYTES = Number(process.env.ESPALIER_JOURNAL_GB ?? 1)
const TURNS = 16
const SAMPLED = 512
const OBSERVED = 512
const MEMBERS = 8
/** Listing 10 GB takes less; a listing is not longer for what its trees hold. */
const MOST_SECONDS = 2

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

async function writeRun(folder: string): Promise<number> {
  const { journal } = runPaths(folder)
  await using writer = await openRunWriter(folder)
  let groups = 0
  for (; groups === 0 || statSync(journal).size < GIGABYTES * 1e9; groups++) {
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

async function secondsToList(folder: string, groups: number): Promise<number> {
  const start = performance.now()
  await using reader = await openRunReader(folder)
  if (reader.groupCount !== groups) throw new Error(`${reader.groupCount} of ${groups} groups`)
  return (performance.now() - start) / 1000
}

/** The floor of reading everything: its bytes, and nothing done with them. */
async function secondsToRead(path: string): Promise<number> {
  const start = performance.now()
  const handle = await open(path)
  const chunk = Buffer.alloc(1 << 20)
  while ((await handle.read(chunk, 0, chunk.length)).bytesRead > 0);
  await handle.close()
  return (performance.now() - start) / 1000
}

/** Lists a long run five times with its index, once without, and once more with the one then made. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bench-'))
  try {
    const groups = await writeRun(folder)
    const { journal, index } = runPaths(folder)
    const withIndex: number[] = []
    for (let turn = 0; turn < 5; turn++) withIndex.push(await secondsToList(folder, groups))
    const read = await secondsToRead(journal)
    await rm(index)
    const without = await secondsToList(folder, groups)
    const madeAnew = await secondsToList(folder, groups)
    const figures = {
      gigabytes: statSync(journal).size / 1e9,
      groups,
      indexMegabytes: statSync(index).size / 1e6,
      secondsWithIndex: withIndex.sort((a, b) => a - b),
      secondsWithout: without,
      secondsMadeAnew: madeAnew,
      secondsToReadBytes: read,
      ratioToReading: withIndex[2]! / read,
    }
    if (!json) console.log(figures)
    if (withIndex[2]! > MOST_SECONDS) {
      throw new Error(`Listing took ${withIndex[2]!.toFixed(2)} s; ${MOST_SECONDS} s are promised.`)
    }
    return figures
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
