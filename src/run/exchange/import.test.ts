import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chainGroup, plainTree, toExport, treeGroup } from '../../../test/export-runs.ts'
import { writeTo } from '../../../test/memory-output.ts'
import { openByteRenderer } from '../../../test/rolling.ts'
import type { Group, Weighted } from '../../base/core/group.ts'
import type { ExportGroup } from '../sinks/format.ts'
import { formatNamed } from '../sinks/formats/registry.ts'
import { makeSelection } from '../sinks/selection.ts'
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
      const { group } = makeSelection({})(treeGroup(seed, 2))
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
      const groups = ['slime', 'skyrl', 'trl', 'verifiers', 'verl'].includes(name) ? seeing : chains
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

it('[D1] keeps a trajectory whose tokens all lie in a row of another, without a reward', async () => {
  const { members, ...rest } = plainTree()
  const [long, other] = members as readonly [Weighted, Weighted]
  const short = { ...other.trajectory, end: { node: 2, offset: 3 } }
  const tree = { ...long.tree, trajectories: [long.trajectory, short] }
  const shared = [
    { ...long, tree },
    { ...other, tree, trajectory: short },
  ]
  const [read] = await through('jsonl', [{ ...rest, members: shared }])
  expect(read!.group.members.map(({ trajectory }) => trajectory.id)).toEqual([long.trajectory.id])
  expect(read!.group.unscored).toMatchObject([{ trajectory: { id: short.id, end: short.end } }])
})

it('keeps what other policies said of tokens', async () => {
  const [member] = chains[0]!.members as readonly [Weighted, ...Weighted[]]
  const others = { reference: Float32Array.of(-1, -2, -3) }
  const nodes = member.tree.nodes.map(node =>
    node.segment.origin === 'sampled' ? { ...node, segment: { ...node.segment, others } } : node,
  )
  const group = { ...chains[0]!, members: [{ ...member, tree: { ...member.tree, nodes } }] }
  const before = await writeTo(formatNamed('jsonl'), [toExport(group)])
  const after = await writeTo(formatNamed('jsonl'), await through('parquet', [group]))
  expect(before.lines[0]).toHaveProperty('referenceLogprobs')
  expect(after.lines).toEqual(before.lines)
})

it('reads a reply that calls and has no content', async () => {
  const calls = [{ id: 'c1', type: 'function', function: { name: 'count', arguments: '{}' } }]
  const messages = [
    { role: 'user', content: 'Go.' },
    { role: 'assistant', tool_calls: calls },
  ]
  const folder = join(scratch, `${count++}`)
  writeFileSync(`${folder}.jsonl`, row({ messages }))
  await importRun(`${folder}.jsonl`, { from: 'jsonl', out: folder })
  const { rows } = await exportRun(folder, { to: 'atif', out: `${folder}.atif` })
  expect(rows).toBe(1)
})

it('reads a file that begins with a byte-order mark', async () => {
  const folder = join(scratch, `${count++}`)
  writeFileSync(`${folder}.jsonl`, `\uFEFF${row()}\n`)
  const { rows } = await importRun(`${folder}.jsonl`, { from: 'jsonl', out: folder })
  expect(rows).toBe(1)
})

it('compares the rewards of a file that has no advantages', async () => {
  const folder = join(scratch, `${count++}`)
  const { lines } = await writeTo(formatNamed('verl'), chains.slice(0, 1).map(toExport))
  const bare = lines.map(({ advantages: _, ...line }) => `${JSON.stringify(line)}\n`)
  writeFileSync(`${folder}.jsonl`, bare.join(''))
  await importRun(`${folder}.jsonl`, { from: 'verl', out: folder })
  await using reader = await openRunReader(folder)
  for await (const { group } of reader.groups())
    expect(group.members.map(({ advantage }) => advantage)).toEqual(
      chains[0]!.members.map(({ advantage }) => advantage),
    )
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

const [plainRow] = (await writeTo(formatNamed('jsonl'), chains.slice(0, 1).map(toExport))).lines

describe('files that are not what they say', () => {
  const read = async (name: string, text: string): Promise<unknown> => {
    const folder = join(scratch, `${count++}`)
    writeFileSync(`${folder}.txt`, text)
    return await importRun(`${folder}.txt`, { from: name, out: folder })
  }
  it.each([
    ['jsonl', '{"tree": 3}', /txt:1: tree should be a text, found 3/],
    ['jsonl', '\n{"a":', /txt:2: not JSON/],
    [
      'slime',
      sample({ rollout_log_probs: [-1, 1.5] }),
      /log_probs\[1\] should be a log-probability/,
    ],
    ['slime', sample({ response_length: 4 }), /response_length should be from 0 to 3, found 4/],
    ['slime', sample({ status: 'odd' }), /no status called "odd". Known: pending/],
    ['slime', sample({ loss_mask: [1] }), /response has 2 entries but loss_mask has 1/],
    ['slime', sample({ tokens: [1, -2, 3] }), /tokens\[1\] should be a token id, found -2/],
    ['slime', sample({ loss_mask: [1, 7] }), /loss_mask\[1\] should be 0 or 1, found 7/],
    ['skyrl', '[]', /expected an object, found a list of 0/],
    ['verifiers', said({ role: 'user' }), /message: content should be a text, found nothing/],
    ['art', '{}', /keeps messages only: name the model/],
    ['tinker', '{}', /tinker cannot be imported: it keeps neither rewards nor messages/],
    ['parket', '{}', /No format to import called "parket". Known: jsonl/],
  ])('%s: %s', async (name, text, reason) => {
    await expect(read(name, text)).rejects.toThrow(reason)
  })

  it.each([
    [{ trajectory: 'pears/0' }, /trajectory should be pears\/0\/NUMBER, found "pears\/0"/],
    [{ rows: 2 }, /txt:1: row 0 of 2 of pears\/0\/0, as number 0 of 1 in the file/],
    [{ basis: 'cold' }, /txt:1: no basis called "cold". Known: tempered/],
    [{ outcome: { kind: 'done' } }, /outcome: no kind called "done". Known: completed/],
    [{ fidelity: {} }, /fidelity: kind should be a text, found nothing/],
    [{ rewards: { exact: 'x' } }, /rewards: exact should be a number, found "x"/],
    [{ messages: [null] }, /messages\[0\]: expected an object, found null/],
    [{ messages: [{ role: 'x' }] }, /messages\[0\]: no role called "x". Known: system/],
    [{ messages: [{ role: 'user' }] }, /\[0\]: content should be a text, found nothing/],
    [{ tools: [{ function: 3 }] }, /tools\[0\]: function: expected an object, found 3/],
    [{ passages: [[4, 7, [{}]]] }, /passages\[0\]: value\[0\]: trajectory should be a text/],
  ])('a row with %j', async (more, reason) => {
    await expect(read('jsonl', row(more))).rejects.toThrow(reason)
  })

  it('a row or a tree that comes twice', async () => {
    await expect(read('jsonl', `${row()}\n${row()}`)).rejects.toThrow(/as number 0 of 2/)
    const other = row({ group: 'figs', tree: 'figs/0', trajectory: 'figs/0/0' })
    const again = row({ group: 'plums' })
    const twice = read('jsonl', [row(), other, again].join('\n'))
    await expect(twice).rejects.toThrow(/tree pears\/0 comes a second time/)
  })
})

function row(more: object = {}): string {
  return JSON.stringify({ ...plainRow, ...more })
}

/** An episode of verifiers in which one message was said. */
function said(message: object): string {
  const node = { parent: null, message, sampled: false, token_ids: [], mask: [] }
  const task = { data: {} }
  const trace = { id: 'x', info: {}, nodes: [node], task, tools: [], rewards: {} }
  return JSON.stringify({ id: 'x', task, traces: [trace] })
}

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
