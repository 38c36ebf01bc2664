import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chainGroup, toExport, treeGroup } from '../../test/export-runs.ts'
import { writeTo } from '../../test/memory-output.ts'
import { openByteRenderer } from '../../test/rolling.ts'
import type { Group } from '../core/group.ts'
import type { ExportGroup } from '../sinks/format.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { openSelection } from '../sinks/selection.ts'
import { openRunReader } from '../store/store.ts'
import { exportRun } from './export.ts'
import { importRun } from './import.ts'

const scratch = mkdtempSync(join(tmpdir(), 'espalier-import-'))
const renderer = await openByteRenderer()
let count = 0

/** Writes groups in a format, reads the file into a run, and gives the groups of that run. */
async function through(name: string, groups: readonly Group[]): Promise<readonly ExportGroup[]> {
  const folder = join(scratch, `${count++}`)
  const { bytes } = await writeTo(formatNamed(name), groups.map(toExport))
  writeFileSync(`${folder}.${name}`, bytes)
  await importRun(`${folder}.${name}`, { from: name, out: folder, renderer })
  await using reader = await openRunReader(folder)
  const read: ExportGroup[] = []
  for await (const group of reader.groups()) read.push(group)
  return read
}

const chains = [
  chainGroup([1, 0, 0.5]),
  chainGroup([0, 1], { id: 'plums', rewritten: [1] }),
  chainGroup([0.25, 1], { id: 'figs', blind: [0] }),
]
const seeing = chains.slice(0, 2)
const seeds = Array.from({ length: process.env.ESPALIER_SOAK ? 100 : 8 }, (_, index) => index)

describe('what is exported and imported comes back', () => {
  it.each(['jsonl', 'parquet'])('%s: every field of every row of a chain', async name => {
    const read = await through(name, chains)
    const before = await writeTo(formatNamed('jsonl'), chains.map(toExport))
    const after = await writeTo(formatNamed('jsonl'), read)
    expect(after.lines).toEqual(before.lines)
  })

  it.each(['jsonl', 'parquet'])('%s: rows, masks and credit of random trees', async name => {
    let whole = 0
    for (const seed of seeds) {
      const { group } = openSelection({})(treeGroup(seed, 2))
      const read = await through(name, [group])
      const before = await writeTo(formatNamed('jsonl'), [toExport(group)])
      const after = await writeTo(formatNamed('jsonl'), read)
      expect(after.lines.map(essence)).toEqual(before.lines.map(essence))
      const withRows = new Set(before.lines.map(({ trajectory }) => trajectory)).size
      // A trajectory whose every token another one trains has no row, and its credit is gone.
      if (withRows < group.members.length) continue
      whole++
      after.lines.forEach((line, index) => {
        expectClose(line.tokenAdvantages, before.lines[index]!.tokenAdvantages)
        expectClose(line.tokenWeights, before.lines[index]!.tokenWeights)
      })
    }
    expect(whole).toBeGreaterThan(0)
  })

  it.each(['slime', 'verl', 'trl', 'skyrl', 'rllm', 'verifiers', 'atif'])(
    '%s: the tokens, rewards and advantages it carries, written again the same',
    async name => {
      const groups = ['slime', 'skyrl', 'trl', 'verifiers'].includes(name) ? seeing : chains
      const read = await through(name, groups)
      const before = await writeTo(formatNamed(name), groups.map(toExport))
      const after = await writeTo(formatNamed(name), read)
      expect(after.lines.map(line => pick(line, numbers[name]!))).toEqual(
        before.lines.map(line => pick(line, numbers[name]!)),
      )
    },
  )

  it.each(['openai-sft', 'trl-sft', 'tau-bench', 'art'])(
    '%s: the messages, encoded again and marked so',
    async name => {
      const read = await through(name, [chainGroup([1, 0])])
      const members = read.flatMap(({ group }) => group.members)
      expect(members).toHaveLength(2)
      for (const { trajectory, tree } of members) {
        expect(trajectory.fidelity.kind).toBe('re-encoded')
        expect(trajectory.messages.map(({ role }) => role)).toEqual([
          'user',
          'assistant',
          'tool',
          'assistant',
        ])
        const text = tree.nodes.map(({ segment }) => renderer.decode(segment.ids)).join('')
        expect(text).toContain('How many pears?')
        expect(text).toContain('There are')
        expect(trajectory.turns).toHaveLength(2)
      }
    },
  )

  it('a run of a foreign file can be exported to other trainers', async () => {
    const folder = join(scratch, `${count++}`)
    const { bytes } = await writeTo(formatNamed('rllm'), chains.slice(0, 1).map(toExport))
    writeFileSync(`${folder}.jsonl`, bytes)
    const counts = await importRun(`${folder}.jsonl`, { from: 'rllm', out: folder })
    expect(counts).toEqual({ groups: 1, trajectories: 3, rows: 3, encodedAgain: 0 })
    const { rows } = await exportRun(folder, { to: 'verl', out: `${folder}.verl` })
    expect(rows).toBe(3)
  })
})

it('gives tasks their data again from a file', async () => {
  const folder = join(scratch, `${count++}`)
  const { bytes } = await writeTo(formatNamed('jsonl'), chains.slice(0, 1).map(toExport))
  writeFileSync(`${folder}.jsonl`, bytes)
  writeFileSync(`${folder}.tasks.jsonl`, '{"id":"pears","prompt":"How many pears?","answer":"0"}\n')
  const tasks = `${folder}.tasks.jsonl`
  await importRun(`${folder}.jsonl`, { from: 'jsonl', out: folder, tasks })
  await using reader = await openRunReader(folder)
  for await (const { task } of reader.groups()) expect(task.data).toMatchObject({ answer: '0' })
})

describe('files that are not what they say', () => {
  const read = async (name: string, text: string): Promise<unknown> => {
    const folder = join(scratch, `${count++}`)
    writeFileSync(`${folder}.txt`, text)
    return await importRun(`${folder}.txt`, { from: name, out: folder })
  }
  it.each([
    ['jsonl', '{"tree": 3}', /txt:1: tree should be a text, found 3/],
    ['jsonl', '\n{"a":', /txt:2: not JSON/],
    ['slime', sample({ loss_mask: [1] }), /response has 2 entries but loss_mask has 1/],
    ['slime', sample({ tokens: [1, -2, 3] }), /tokens\[1\] should be a token id, found -2/],
    ['slime', sample({ loss_mask: [1, 7] }), /loss_mask\[1\] should be 0 or 1, found 7/],
    ['skyrl', '[]', /expected an object, found a list of 0/],
    ['art', '{}', /keeps messages only: name the model/],
    ['tinker', '{}', /tinker cannot be imported: it keeps neither rewards nor messages/],
    ['parket', '{}', /No format to import called "parket". Known: jsonl/],
  ])('%s: %s', async (name, text, reason) => {
    await expect(read(name, text)).rejects.toThrow(reason)
  })
})

function sample(more: object): string {
  const plain = {
    group_index: 0,
    index: 0,
    rollout_id: 0,
    tokens: [1, 2, 3],
    response_length: 2,
    loss_mask: [1, 1],
    reward: 1,
    status: 'completed',
  }
  return JSON.stringify({ ...plain, ...more })
}

/** What a row trains, and with what; the names of trajectories without a row are gone. */
function essence(line: Record<string, unknown>): object {
  const { ids, mask, logprobs, origins, versions, reward, advantage, task, tree } = line
  return { ids, mask, logprobs, origins, versions, reward, advantage, task, tree }
}

function expectClose(after: unknown, before: unknown): void {
  expect(after === undefined).toBe(before === undefined)
  const expected = (before ?? []) as readonly number[]
  expected.forEach((value, index) => {
    expect((after as readonly number[])[index]).toBeCloseTo(value, 9)
  })
}

const numbers: Readonly<Record<string, readonly string[]>> = {
  slime: ['tokens', 'response_length', 'loss_mask', 'rollout_log_probs', 'reward', 'rollout_id'],
  verl: ['prompt_ids', 'response_ids', 'response_mask', 'response_logprobs', 'reward_score', 'uid'],
  trl: ['prompt_ids', 'completion_ids', 'env_mask', 'logprobs', 'reward', 'advantage'],
  skyrl: ['prompt_token_ids', 'response_ids', 'loss_mask', 'reward', 'trajectory_id'],
  rllm: ['id', 'trajectories'],
  verifiers: ['id', 'group', 'traces'],
  atif: ['trajectory_id', 'steps', 'agent'],
}

function pick(line: Record<string, unknown>, names: readonly string[]): object {
  return Object.fromEntries(names.map(name => [name, line[name]]))
}
