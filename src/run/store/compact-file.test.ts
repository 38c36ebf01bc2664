import { mkdtemp, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { TreeId } from '../../base/core/ids.ts'
import type { AttemptEntry } from './attempt-record.ts'
import { openCompactFile } from './compact-file.ts'

const entry = (tree: string, turn: number): AttemptEntry => ({
  kind: 'step',
  tree: tree as TreeId,
  turn,
  transition: { kind: 'continue', observed: [{ role: 'user', content: `${tree} ${turn}` }] },
})

const goingOn = { isOver: false }

it('[P1] is written anew without what is of no more use, and keeps all that is live', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'espalier-compact-')), 'unfinished.frames')
  const live = new Set<string>(['slow/0'])
  const isLive = (tree: TreeId): boolean => live.has(tree)
  const file = await openCompactFile(path, {
    isLive,
    onEntry: () => {},
    smallest: 20_000,
    apart: 0,
  })
  for (let round = 0; round < 100; round++) {
    live.add(`quick-${round}/0`)
    // The slow one's entries lie in frames of their own, and among those of the others.
    if (round % 5 === 0) await file.append(entry('slow/0', round / 5), goingOn)
    if (round % 10 === 0) await new Promise(setImmediate)
    for (let turn = 0; turn < 20; turn++)
      await file.append(entry(`quick-${round}/0`, turn), goingOn)
    await new Promise(setImmediate)
  }
  const { size } = await stat(path)
  for (let round = 0; round < 100; round++) {
    live.delete(`quick-${round}/0`)
    file.waste(20)
  }
  await file[Symbol.asyncDispose]()
  expect((await stat(path)).size).toBeLessThan(size / 3)

  const found: AttemptEntry[] = []
  const again = await openCompactFile(path, { isLive, onEntry: each => found.push(each) })
  await again.remove()
  expect(found.filter(({ tree }) => tree === 'slow/0')).toEqual(
    Array.from({ length: 20 }, (_, turn) => entry('slow/0', turn)),
  )
})

it('writes nothing of an attempt that was over within a moment, and all that is live when it closes', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'espalier-compact-')), 'unfinished.frames')
  const isLive = (tree: TreeId): boolean => tree === 'slow/0'
  const quick = { isOver: false }
  const file = await openCompactFile(path, { isLive, onEntry: () => {}, apart: 60_000 })
  await file.append(entry('slow/0', 0), goingOn)
  await new Promise(setImmediate)
  // A minute passes between two writes: these are still waiting when the quick one ends.
  await file.append(entry('quick/0', 0), quick)
  await file.append(entry('slow/0', 1), goingOn)
  quick.isOver = true
  file.waste(1)
  await file[Symbol.asyncDispose]()

  const found: AttemptEntry[] = []
  await openCompactFile(path, { isLive: () => true, onEntry: each => found.push(each) }).then(
    again => again.remove(),
  )
  expect(found).toEqual([entry('slow/0', 0), entry('slow/0', 1)])
})
