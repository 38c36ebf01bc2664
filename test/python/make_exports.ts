// Writes every format for `check_exports.py`: chains, a rewritten context, and trees; and a table at its limits.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Group } from '../../src/base/core/group.ts'
import { RefusedError } from '../../src/run/sinks/format.ts'
import { formats } from '../../src/run/sinks/formats/registry.ts'
import { chainGroup, seeingGroup, toExport, treeGroup } from '../export-runs.ts'
import { writeTo } from '../memory-output.ts'
import { writeLimits } from './limit-table.ts'

const folder = process.argv[2]
if (folder === undefined) throw new Error('say where to: make_exports.ts FOLDER')

const shapes: Readonly<Record<string, readonly Group[]>> = {
  chains: [chainGroup([1, 0, 0.5, 0.25]), chainGroup([0, 1, 1, 0.75], { id: 'plums' })],
  rewritten: [chainGroup([1, 0, 0.5], { rewritten: [0, 2] })],
  trees: [3, 5, 8].map(seed => ({
    ...seeingGroup(treeGroup(seed)),
    id: `g${seed}` as Group['id'],
  })),
}

for (const [shape, groups] of Object.entries(shapes)) {
  for (const format of formats) {
    const file = join(folder, shape, format.name)
    mkdirSync(join(folder, shape), { recursive: true })
    try {
      // Each token once: these checks are of data classes and of who is worth what; gradients are in trainers/.
      const options = format.training ? ({ form: 'once' } as const) : {}
      writeFileSync(file, (await writeTo(format, groups.map(toExport), options)).bytes)
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      writeFileSync(`${file}.refused`, error.message)
    }
  }
}

await writeLimits(join(folder, 'limits'))
