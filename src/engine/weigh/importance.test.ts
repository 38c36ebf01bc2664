import { describe, expect, it } from 'vitest'
import { treeGroup } from '../../../test/export-runs.ts'
import { withProximal } from '../../../test/proximal.ts'
import type { SampledSegment } from '../../base/core/segment.ts'
import { pathLoss } from '../../base/math/paths.ts'
import { lossNamed, lossNames } from '../../base/math/registry.ts'
import { importanceOf } from '../../learn/learn/off-policy.ts'
import { laidOut } from '../../learn/model/learn.ts'
import { pathsOf } from '../../run/rows/paths.ts'
import { groupRows } from '../../run/rows/row-record.ts'
import { tokenCredit } from '../../run/sinks/credited-row.ts'
import { formatNamed } from '../../run/sinks/formats/registry.ts'
import { refuseImportance } from '../../run/sinks/forms.ts'
import { newestVersion, readImportance, weighImportance } from './importance.ts'

const kinds = [
  ['token:high=1.2'],
  ['sequence:high=1.5'],
  ['mask:low=0.9,high=1.1'],
  ['icepop', 'staleness:decay=0.5'],
  ['reject:low=0.98,high=1.02'],
  ['token:veto=0.8'],
  ['staleness:decay=0.7,lag=2'],
]

describe.each(kinds)('importance weights in weighing: %s %s', (...names) => {
  const off = readImportance(names)

  it('[T5] are those that the trainer gives the same paths, and sum to the same gradient', () => {
    for (const seed of [1, 2, 3]) {
      const group = withProximal(treeGroup(seed), seed)
      const current = newestVersion(group)
      const plain = groupRows(group)
      const rows = groupRows(weighImportance(group, off, current))
      const given = (all: typeof rows) => all.map(({ row }) => ({ row, length: row.ids.length }))
      const { paths } = pathsOf(given(rows))
      const expected = importanceOf(pathsOf(given(plain)).paths, off, {
        recorded: laidOut(rows.map(({ row }) => row.logprobs)),
        proximal: laidOut(rows.map(({ row }) => row.others.proximal!)),
        versions: laidOut(
          rows.map(({ row }) => {
            const all = new Float32Array(row.ids.length)
            for (const { start, end, value } of row.versions) all.fill(value.from, start, end)
            return all
          }),
        ),
        current,
      })
      expect(paths.importance!.length).toBe(expected.weights.length)
      paths.importance!.forEach((weight, entry) => {
        expect(weight).toBeCloseTo(expected.weights[entry]!, 12)
      })
      expect(new Set(paths.importance).size).toBeGreaterThan(1)
    }
  })

  it('[T5] make the credit of rows the slope of the loss at ratio 1, in both forms', () => {
    const group = weighImportance(withProximal(treeGroup(5), 5), off, 4)
    const rows = groupRows(group)
    const { paths } = pathsOf(rows.map(({ row }) => ({ row, length: row.ids.length })))
    const logprobs = laidOut(rows.map(({ row }) => row.others.proximal!))
    const { gradient } = pathLoss(lossNamed('ppo'), paths, { logprobs, oldLogprobs: logprobs })
    const credit = rows.flatMap(member => [...tokenCredit(member)])
    const size = Math.max(...gradient.map(Math.abs))
    const scale = Math.max(...credit.map(Math.abs)) / size
    credit.forEach((value, token) => {
      expect(-gradient[token]! * scale).toBeCloseTo(value, 9)
    })
    const sum = (form: 'once' | 'paths'): number =>
      groupRows(group, { form })
        .flatMap(member => [...tokenCredit(member)])
        .reduce((total, value) => total + value, 0)
    expect(sum('paths')).toBeCloseTo(sum('once'), 9)
  })
})

describe('what takes importance weights', () => {
  const group = withProximal(treeGroup(3), 3)
  const weighed = (...names: readonly string[]) => weighImportance(group, readImportance(names), 9)
  const refusal = (format: string, names: readonly string[]): string => {
    try {
      refuseImportance(formatNamed(format), weighed(...names))
      return 'carried'
    } catch (error) {
      return (error as Error).message
    }
  }

  it.each([
    ['jsonl', 'carried', 'carried', 'carried'],
    ['parquet', 'carried', 'carried', 'carried'],
    ['verl', 'carried', 'carried', 'carried'],
    ['tinker', 'carried', 'carried', 'carried'],
    ['slime', 'one number for a row', 'carried', 'carried'],
    ['trl', 'already', 'already', 'carried'],
    ['rllm', 'already', 'already', 'carried'],
    ['skyrl', 'takes none', 'takes none', 'takes none'],
    ['art', 'takes none', 'takes none', 'takes none'],
  ])('%s', (format, token, sequence, age) => {
    expect(refusal(format, ['token'])).toContain(token)
    expect(refusal(format, ['sequence'])).toContain(sequence)
    expect(refusal(format, ['staleness'])).toContain(age)
    expect(refusal(format, ['none'])).toBe('carried')
  })

  it('ratios need scores of finished tokens, and say how to get them', () => {
    expect(() => weighImportance(treeGroup(3), readImportance(['token']), 9)).toThrow(
      'roll with --proximal recompute',
    )
  })

  it.each(['token', 'reject:low=0.5,high=2'])(
    '[T1] %s: a token for which the policy gave no number has none, and the weight 1',
    name => {
      const group = withProximal(treeGroup(2), 2)
      const { tree } = group.members[0]!
      const node = tree.nodes.findIndex(({ segment }) => segment.origin === 'sampled')
      const { logprobs } = tree.nodes[node]!.segment as SampledSegment
      const before = weighImportance(group, readImportance([name]), 4).members[0]!
      logprobs![0] = Number.NaN
      const { importance } = weighImportance(group, readImportance([name]), 4).members[0]!
      expect(importance!.nodes.get(node)![0]).toBe(1)
      expect([...importance!.nodes.get(node)!].slice(1)).toEqual(
        [...before.importance!.nodes.get(node)!].slice(1),
      )
      expect(importance!.factor).toBeGreaterThan(0)
    },
  )

  it('every loss takes what rows carry', () => {
    const rows = groupRows(weighed('token'))
    const { paths } = pathsOf(rows.map(({ row }) => ({ row, length: row.ids.length })))
    const logprobs = laidOut(rows.map(({ row }) => row.others.proximal!))
    for (const name of lossNames) {
      const { loss } = pathLoss(lossNamed(name), paths, { logprobs, oldLogprobs: logprobs })
      expect(loss).not.toBeNaN()
    }
  })
})
