import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCommand } from '../../../test/command-line.ts'
import { calculator } from '../../engine/environments/built-in/calculator.ts'
import { roll } from '../../run/run/roll.ts'
import { lockFile } from '../../run/store/lock.ts'
import { readManifest, runPaths, writeManifest } from '../../run/store/run-folder.ts'
import { scripted } from '../../testing.ts'
import { curve } from './overview.ts'

async function rolled(): Promise<string> {
  const out = join(await mkdtemp(join(tmpdir(), 'espalier-show-')), 'run')
  const tasks = ['sums/easy/1', 'sums/easy/2', 'sums/hard/1'].map(id => ({
    id,
    prompt: '1+1?',
    answer: '2',
  }))
  const policy = await scripted(['2'])
  for await (const _ of roll(calculator(), tasks, { policy, group: 2, out }));
  return out
}

it('every id that is printed opens, and so do parts that only one has', async () => {
  const run = await rolled()
  const { stdout } = await runCommand(['show', run])
  const printed = [...stdout.matchAll(/^(sums\/\S+)/gm)].map(([, id]) => id!)
  expect(printed).toHaveLength(3)
  const short = await runCommand(['show', run, 'hard/1/1/0'])
  expect(short).toEqual(await runCommand(['show', run, 'sums/hard/1/1/0']))
  expect(short.stdout).toMatch(/reward \d/)
  const absent = await runCommand(['show', run, 'hard/1/7'])
  expect([absent.code, absent.stderr]).toEqual([2, expect.stringContaining('"hard/1/7"')])
  for (const id of [...printed, 'hard/1', 'easy/2']) {
    const group = await runCommand(['show', run, id])
    expect(group.code).toBe(0)
    const [trajectory, tree] = [
      /^\S+/m.exec(group.stdout)![0],
      /^\S+(?=\/\d+\s)/m.exec(group.stdout)![0],
    ]
    expect((await runCommand(['show', run, trajectory!])).stdout).toMatch(/reward \d/)
    expect((await runCommand(['show', run, tree!])).code).toBe(0)
  }
})

it('names what a part of an id may be where several have it', async () => {
  const run = await rolled()
  const { code, stderr } = await runCommand(['show', run, 'sums'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('may be 3 groups: sums/easy/1')])
})

it('chooses groups by task, reward and number', async () => {
  const run = await rolled()
  const linesOf = async (...words: string[]): Promise<number> => {
    const { stdout } = await runCommand(['show', run, ...words])
    return [...stdout.matchAll(/^sums\//gm)].length
  }
  expect(await linesOf('--task', 'easy')).toBe(2)
  expect(await linesOf('--limit', '1')).toBe(1)
  expect(await linesOf('--reward', '>=5')).toBe(0)
  expect((await runCommand(['show', run, '--reward', 'much'])).code).toBe(2)
})

it('shows what was asked for alone, says where there is none, and takes a whole id for that task', async () => {
  const run = await rolled()
  const shown = async (...words: string[]) => (await runCommand(['show', run, ...words])).stdout
  expect(await shown('--limit', '1')).toMatch(/^roll finished/)
  expect(await shown('--task', 'easy')).toMatch(/^sums\/easy/)
  expect(await shown('--failed')).toBe('none of 3 groups is like that\n')
  expect(await shown('--task', 'sums/easy/1')).toMatch(/^sums\/easy\/1 [^\n]*\n$/)
})

it('says of a folder without a run what it is, and which run may be meant', async () => {
  const run = await rolled()
  const refused = async (word: string) => (await runCommand(['show', word])).stderr
  expect(await refused('base-model')).toContain('is the folder of a model; `')
  expect(await refused(`${run}s`)).toContain(`Did you mean ${run}?`)
})

it('shows a tree as it branched, with the rewards at its leaves', async () => {
  const out = join(await mkdtemp(join(tmpdir(), 'espalier-show-tree-')), 'run')
  const policy = await scripted(['2', '3', '2', '4'])
  const options = {
    policy,
    group: 1,
    out,
    strategy: 'tree',
    branch: 'fixed:width=2',
    leaves: 2,
  } as const
  for await (const _ of roll(calculator(), [{ id: 'sum', prompt: '1+1?', answer: '2' }], options));
  const { stdout } = await runCommand(['show', out, 'sum'])
  const [tree, opening, ...branches] = stdout.trim().split('\n')
  expect([tree, opening]).toEqual(['sum/0', 'the opening'])
  expect(branches.filter(line => /^[├└]─ turn 1 {2}\d/.test(line))).toHaveLength(2)
  expect(branches.filter(line => /■ sum\/0\/\d {2}reward [01] /.test(line))).toHaveLength(2)
  expect((await runCommand(['show', out, 'sum/0'])).stdout).toBe(stdout)
})

interface Path {
  readonly ids: readonly number[]
  readonly trajectory: string
}

/** The share that a path has in each of its tokens, where paths that begin alike are one as far as they do. */
function passagesOf({ ids, trajectory }: Path, paths: readonly Path[]) {
  return ids.map((_, start) => {
    const begins = (path: Path): boolean => ids.every((id, at) => at > start || path.ids[at] === id)
    const share = 1 / paths.filter(begins).length
    return [start, start + 1, [{ trajectory, advantage: 0, weight: 1, share }]]
  })
}

it('shows where attempts that share some turns part within one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-show-parted-'))
  const call =
    '<tool_call>\n{"name": "calculate", "arguments": {"expression": "1+1"}}\n</tool_call>'
  const file = join(folder, 'rows.jsonl')
  const rows: Path[] = []
  for (const [index, said] of ['It is 2.', 'It is 3.', 'No.'].entries()) {
    const out = join(folder, String(index))
    const options = { policy: await scripted([call, said]), group: 1, out }
    const tasks = [{ id: 'sum', prompt: '1+1?', answer: '2' }]
    for await (const _ of roll(calculator(), tasks, options));
    await runCommand(['export', out, '--to', 'jsonl', '--out', file, '--include', 'filtered'])
    // As though one tree had grown all three.
    rows.push({ ...JSON.parse(await readFile(file, 'utf8')), trajectory: `sum/0/${index}` })
  }
  const shared = rows.map(row => ({ ...row, passages: passagesOf(row, rows) }))
  await writeFile(file, shared.map(row => `${JSON.stringify(row)}\n`).join(''))
  const imported = join(folder, 'imported')
  await runCommand(['import', file, '--from', 'jsonl', '--out', imported])
  const { stdout } = await runCommand(['show', imported, 'sum'])
  expect(stdout.match(/^[│├└─ ]*(?:within turn|turn|the opening)(?: \d)?/gm)).toEqual([
    'turn 1',
    '├─ within turn 2',
    '│  ├─ turn 2',
    '│  └─ turn 2',
    '└─ turn 2',
  ])
})

it('names a damaged file beside the journal, and shows the rest', async () => {
  const run = await rolled()
  const whole = (await runCommand(['show', run])).stdout
  const report = join(run, 'report.json')
  const metrics = join(run, 'metrics.jsonl')
  for (const text of ['{x', 'null', '']) {
    await writeFile(report, text)
    await writeFile(metrics, `null\n{"step":1,"reward":1}\n{"st`)
    const { code, stdout } = await runCommand(['show', run])
    expect([code, stdout]).toEqual([0, expect.stringContaining(`${report} cannot be read: `)])
    expect(stdout).toContain(`line 1 of ${metrics} is not a step`)
    expect(stdout.replaceAll(/left out.*\n/g, '')).toBe(whole)
    const reported = await runCommand(['show', run, '--report'])
    expect([reported.code, reported.stderr]).toEqual([0, expect.stringContaining(report)])
  }
})

it('says in a report why a run was stopped, in words', async () => {
  const out = join(await mkdtemp(join(tmpdir(), 'espalier-show-stopped-')), 'run')
  const tasks = ['a', 'b', 'c'].map(id => ({ id, prompt: '1+1?', answer: '2' }))
  const options = { policy: await scripted(['2']), group: 1, out, budget: { trajectories: 1 } }
  const rolling = async () => {
    for await (const _ of roll(calculator(), tasks, options));
  }
  await rolling().catch(() => undefined)
  const { stdout } = await runCommand(['show', out, '--report'])
  expect(stdout).toMatch(/^roll stopped \(the budget /)
})

it('shows what a condensed policy really saw, turn by turn', async () => {
  const out = join(await mkdtemp(join(tmpdir(), 'espalier-show-seen-')), 'run')
  const call = '<tool_call>\n{"name": "recall", "arguments": {"block": 1}}\n</tool_call>'
  const policy = await scripted([call, 'It holds 48,000.'])
  const text = `The library opened in May. ${'It has many rooms and a fine hall. '.repeat(12)}It holds 48,000 volumes.`
  const prompt = `${text}\n\nHow many volumes does it hold?`
  const options = { policy, group: 1, out, condense: 'keyword' }
  for await (const _ of roll(calculator(), [{ id: 'long', prompt, answer: '1' }], options));
  const said = (await runCommand(['show', out, 'long/0'])).stdout
  expect(said).toContain('many rooms')
  expect(said).not.toContain('<block_1>')
  const seen = (await runCommand(['show', out, 'long/0', '--as-seen'])).stdout
  expect(seen).toMatch(
    /^turn 1: it saw 1 message, \d+ tokens, rewritten by condenser:\nuser +<block_1>Open: The library opened in May\.\n +Asked: It holds 48,000 volumes\./,
  )
  expect(seen).toMatch(/\nturn 2: it saw 3 messages, \d+ tokens\ntool +The library/)
})

it('draws a curve from its least to its most', () => {
  expect(curve([0, 0.5, 1])).toBe('▁▅█')
  expect(curve([1, 1])).toBe('▁▁')
})

it('writes the tokens of a scripted run as text, since it knows their tokenizer', async () => {
  const { stdout } = await runCommand(['show', await rolled(), 'sums/hard/1/0/0', '--tokens'])
  expect(stdout).toContain('1+1?')
  expect(stdout).toContain('{"type": "function"')
})

it('says of a run whose writer is gone that it was interrupted, and of one that is written nothing to do', async () => {
  const run = await rolled()
  const { finished: _, journalBytes: _bytes, ...manifest } = await readManifest(run)
  await writeManifest(run, { ...manifest, status: 'running' })
  const left = await runCommand(['show', run])
  expect(left.stdout).toMatch(/^roll interrupted, begun /)
  expect(left.stdout).toMatch(/^go on {7}.* resume /m)
  expect((await runCommand(['show', run, '--report'])).stdout).toMatch(/^roll interrupted /)
  await using _lock = await lockFile(runPaths(run).lock)
  const written = await runCommand(['show', run])
  expect(written.stdout).toMatch(/^roll running, begun /)
  expect(written.stdout).not.toContain('resume')
})

it.each([
  [['--report', '--failed'], '--report is of the whole run: leave out --failed'],
  [['sums/hard/1', '--report'], '--report is of the whole run: leave out sums/hard/1'],
  [['--tokens'], '--tokens changes nothing here: it needs the id of a trajectory'],
  [['sums/hard/1', '--limit', '3'], '--limit changes nothing here: it chooses groups'],
])('refuses flags that would be ignored: %s', async (words, message) => {
  const { code, stderr } = await runCommand(['show', await rolled(), ...words])
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
})
