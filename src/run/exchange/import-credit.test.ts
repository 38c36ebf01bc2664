import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  chainGroup,
  groupOfLeaves,
  growing,
  seeingGroup,
  toExport,
  treeGroup,
} from '../../../test/export-runs.ts'
import { writeTo } from '../../../test/memory-output.ts'
import { dice, endAt } from '../../../test/random-tree.ts'
import { lossForms, numbersOf } from '../../../test/row-numbers.ts'
import { coverageOf, type Stretch } from '../../base/core/credit.ts'
import type { Group, Weighted } from '../../base/core/group.ts'
import type { RowForm } from '../../base/core/row.ts'
import { given, sampled } from '../../base/core/segment.ts'
import { type Place, root } from '../../base/core/tree.ts'
import { type LeafWeighting, leafWeightNames } from '../../base/math/credit.ts'
import { pathLoss } from '../../base/math/paths.ts'
import { lossNamed } from '../../base/math/registry.ts'
import { pathsOf } from '../rows/paths.ts'
import { groupRows } from '../rows/row-record.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { makeSelection } from '../sinks/selection.ts'
import { readManifest } from '../store/run-folder.ts'
import { openRunReader } from '../store/store.ts'
import { importRun } from './import.ts'
import { weightingOf } from './weighing.ts'

const scratch = mkdtempSync(join(tmpdir(), 'espalier-import-credit-'))
let count = 0

interface Weighing {
  readonly group: Group
  readonly weighting: LeafWeighting
}

/** Writes a group in a format, and gives what a run of that file holds. */
async function through(
  name: string,
  { group, weighting, form }: Weighing & { readonly form: RowForm },
): Promise<Weighing> {
  const folder = join(scratch, `${count++}`)
  const { bytes } = await writeTo(formatNamed(name), [toExport(group)], { weighting, form })
  writeFileSync(`${folder}.rows`, bytes)
  await importRun(`${folder}.rows`, { from: name, out: folder })
  const { config } = await readManifest(folder)
  await using reader = await openRunReader(folder)
  for await (const read of reader.groups()) {
    return { group: read.group, weighting: weightingOf(config) }
  }
  throw new Error('the run is empty')
}

/** Every loss of a group with the slope of each token, added up where the model sees the same tokens before it. */
function learned({ group, weighting }: Weighing): ReadonlyMap<string, number> {
  const rows = groupRows(group, { weighting }).map(({ row, tree }) => ({ row, tree }))
  const keys = rows.flatMap(({ row, tree }) =>
    Array.from(row.ids, (_, token) => `${tree.id} ${row.ids.subarray(0, token + 1).join()}`),
  )
  const { paths } = pathsOf(rows.map(({ row }) => ({ row, length: row.ids.length })))
  const found = new Map<string, number>()
  for (const [name, options] of lossForms) {
    const numbers = { ...numbersOf(keys, 1), options }
    const { loss, gradient } = pathLoss(lossNamed(name), paths, numbers)
    const form = `${name} ${JSON.stringify(options)}`
    found.set(form, loss)
    gradient.forEach((slope, token) => {
      const key = `${form} ${keys[token]}`
      if (slope !== 0) found.set(key, (found.get(key) ?? 0) + slope)
    })
  }
  return found
}

function expectSame(after: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): void {
  const differs = (key: string): boolean =>
    Math.abs((after.get(key) ?? 0) - (before.get(key) ?? 0)) > 1e-9
  const keys = [...before.keys(), ...after.keys()].filter(differs)
  expect(keys.map(key => [key, after.get(key)])).toEqual(keys.map(key => [key, before.get(key)]))
}

/** A group whose tree has endings that were sampled apart and are equal, in pairs behind a shared turn. */
function twins(): Group {
  const tree = growing('t/0')
  const speak = (at: Place, ...ids: number[]): Place => {
    const logprobs = Float32Array.from(ids, () => -0.5)
    return tree.append(
      at,
      sampled({ ids: Int32Array.from(ids), logprobs, version: { from: 1, to: 1 } }),
    )
  }
  const prompt = tree.append(root, given('prompt', Int32Array.of(1, 2)))
  const turn = (end: Place) =>
    ({ from: end.node, end, finish: { kind: 'stop' }, messages: 0 }) as const
  for (const first of [speak(prompt, 3, 4), speak(prompt, 3, 4), speak(prompt, 3, 5)]) {
    const seen = tree.append(first, given('observed', Int32Array.of(6)))
    for (const end of [speak(seen, 7), speak(seen, 7), speak(seen, 8)]) {
      tree.end(endAt(tree, end, { turns: [turn(first), turn(end)], share: 1 / 9 }))
    }
  }
  return groupOfLeaves(tree)
}

/** The group with weights by its leaves' shares, and with advantages of their own for parts of turns. */
function withCredit(group: Group, weighting: LeafWeighting, hasStretches: boolean): Group {
  const { next, chance } = dice(5)
  const stretches = ({ tree, trajectory }: Weighted): readonly Stretch[] =>
    [...coverageOf(tree, trajectory)].flatMap(([node, length]) =>
      chance(0.5) && tree.nodes[node]!.segment.origin === 'sampled'
        ? [{ node, start: Math.floor(length / 2), end: length, advantage: next() }]
        : [],
    )
  const members = group.members.map(member => ({
    ...member,
    weight: weighting === 'branch' ? member.trajectory.share : 1,
    ...(hasStretches && { stretches: stretches(member) }),
  }))
  return { ...group, members }
}

/** Whether each trajectory that is trained has a row, so that the file keeps its reward. */
const hasAllRows = (group: Group): boolean =>
  new Set(groupRows(group).map(({ row }) => row.trajectory.id)).size ===
  group.members.filter(({ dropped }) => dropped === null).length

const trees = [2, 3, 4, 5, 6, 7]
  .map(seed => treeGroup(seed, 2))
  .filter(hasAllRows)
  .slice(0, 3)

describe('[T5] a run of an imported file has every loss and gradient of the run it was written from', () => {
  it.each(
    leafWeightNames.flatMap(weighting => [
      [weighting, 'jsonl', 'once', false] as const,
      [weighting, 'parquet', 'once', true] as const,
      [weighting, 'jsonl', 'paths', true] as const,
    ]),
  )(
    'weighted %s, %s, rows %s, advantages of parts %s',
    async (weighting, name, form, hasStretches) => {
      expect(trees.length).toBeGreaterThan(2)
      for (const source of [twins(), ...trees]) {
        const group = withCredit(source, weighting, hasStretches)
        const read = await through(name, { group, weighting, form })
        expectSame(learned(read), learned({ group, weighting }))
        if (form === 'once') expect(groupRows(read.group)).toHaveLength(groupRows(group).length)
      }
    },
  )

  it.each(['verl', 'slime', 'trl', 'rllm', 'verifiers'])(
    '%s, whatever its tokens are worth',
    async name => {
      for (const source of [twins(), ...trees.map(seeingGroup)]) {
        const { group } = makeSelection({})(withCredit(source, 'uniform', true))
        const weighting = 'uniform'
        const read = await through(name, { group, weighting, form: 'paths' })
        expectSame(learned(read), learned({ group, weighting }))
      }
    },
  )
})

it.each(['verl', 'slime', 'trl', 'skyrl'])(
  '[D1] %s: what a filter kept out of the loss stays out of it',
  async name => {
    const group = chainGroup([1, 0, 0.5], { dropped: [1] })
    const read = await through(name, { group, weighting: 'uniform', form: 'paths' })
    expect(read.group.members.map(({ dropped }) => dropped?.reason ?? null)).toEqual([
      null,
      'no token of it is in the loss of the file',
      null,
    ])
    expect(groupRows(read.group)).toHaveLength(2)
  },
)
