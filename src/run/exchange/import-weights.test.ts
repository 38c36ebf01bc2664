import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { toExport, treeGroup } from '../../../test/export-runs.ts'
import { writeTo } from '../../../test/memory-output.ts'
import { dice } from '../../../test/random-tree.ts'
import { withExperts } from '../../../test/with-experts.ts'
import { coverageOf, type TrajectoryImportance } from '../../base/core/credit.ts'
import type { Group, Weighted } from '../../base/core/group.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { ExportGroup } from '../sinks/format.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { makeSelection } from '../sinks/selection.ts'
import { openRunReader } from '../store/store.ts'
import { exportRun } from './export.ts'
import { importRun } from './import.ts'

const scratch = mkdtempSync(join(tmpdir(), 'espalier-import-weights-'))
let count = 0

type Ratios = TrajectoryImportance['ratios']

/** Writes a group in a format, and gives what a run of that file holds, and the run. */
async function through(name: string, group: Group): Promise<{ run: string; read: ExportGroup }> {
  const run = join(scratch, `${count++}`)
  const { bytes } = await writeTo(formatNamed(name), [toExport(group)])
  writeFileSync(`${run}.rows`, bytes)
  await importRun(`${run}.rows`, { from: name, out: run })
  await using reader = await openRunReader(run)
  for await (const read of reader.groups()) return { run, read }
  throw new Error('the run is empty')
}

/** The group with weights of tokens, alike for all who pass, and of trajectories. */
function weighed(group: Group, ratios: Ratios, seed: number): Group {
  const { next } = dice(seed)
  const weights = new Map<Tree, readonly Float64Array[]>()
  const importanceOf = ({ tree, trajectory }: Weighted): TrajectoryImportance => {
    const ofNodes =
      weights.get(tree) ?? tree.nodes.map(({ segment }) => Float64Array.from(segment.ids, next))
    weights.set(tree, ofNodes)
    const sampled = [...coverageOf(tree, trajectory)].filter(
      ([node]) => tree.nodes[node]!.segment.origin === 'sampled',
    )
    const nodes = new Map(
      sampled.map(([node, length]) => [node, ofNodes[node]!.subarray(0, length)]),
    )
    return { factor: ratios === 'trajectories' ? next() : 1, nodes, ratios }
  }
  const members = group.members.map(member => ({ ...member, importance: importanceOf(member) }))
  return { ...group, members }
}

/** The group as a server grew it that tells experts. */
function served(group: Group, experts: number): Group {
  const trees = new Map<Tree, Tree>()
  const grown = (tree: Tree): Tree => {
    const known = trees.get(tree) ?? withExperts(tree, experts)
    trees.set(tree, known)
    return known
  }
  return {
    ...group,
    members: group.members.map(member => ({ ...member, tree: grown(member.tree) })),
    unscored: group.unscored.map(member => ({ ...member, tree: grown(member.tree) })),
  }
}

const linesOf = async (groups: readonly ExportGroup[]) =>
  (await writeTo(formatNamed('jsonl'), groups)).lines

/** What a reader of a row needs of weights and experts, where every trajectory has a row. */
const essence = ({
  ids,
  mask,
  importance,
  ratios,
  experts,
}: Readonly<Record<string, unknown>>) => ({
  ...{ ids, mask, importance, ratios, experts },
})

it.each(['jsonl', 'parquet'])(
  '%s: importance weights and experts of random trees come back as they were',
  async name => {
    let whole = 0
    await fc.assert(
      fc.asyncProperty(
        fc.nat(1000),
        fc.constantFrom<Ratios>('none', 'trajectories', 'tokens'),
        fc.constantFrom(64, 512),
        async (seed, ratios, experts) => {
          const { group } = makeSelection({})(treeGroup(seed, 2))
          const before = weighed(served(group, experts), ratios, seed)
          const { read } = await through(name, before)
          const [rows, again] = [await linesOf([toExport(before)]), await linesOf([read])]
          const named = new Set(rows.map(({ trajectory }) => trajectory))
          // A trajectory whose every token another one trains has no row, and its credit is gone.
          if (named.size < before.members.length) return
          whole++
          expect(again.map(essence)).toEqual(rows.map(essence))
          const factors = ({ members }: Group): readonly unknown[] =>
            members.map(({ trajectory, importance }) => [trajectory.id, importance?.factor])
          expect(factors(read.group)).toEqual(factors(before))
        },
      ),
      { numRuns: process.env.ESPALIER_SOAK ? 200 : 15 },
    )
    expect(whole).toBeGreaterThan(0)
  },
)

it('weights of an imported file are written again, unless others or none are asked for', async () => {
  const { group } = makeSelection({})(treeGroup(3, 2))
  const { run } = await through('jsonl', weighed(group, 'tokens', 3))
  const weightsOf = async (importance?: readonly string[]): Promise<boolean> => {
    const out = join(scratch, `${count++}.jsonl`)
    await exportRun(run, { to: 'jsonl', out, ...(importance && { importance }) })
    await importRun(out, { from: 'jsonl', out: `${out}.run` })
    await using reader = await openRunReader(`${out}.run`)
    for await (const read of reader.groups()) {
      return read.group.members.some(each => each.importance)
    }
    throw new Error('the run is empty')
  }
  expect(await weightsOf()).toBe(true)
  expect(await weightsOf(['none'])).toBe(false)
})
