import {
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../../../test/command-line.ts'
import { lockFile } from '../../run/store/lock.ts'
import { readManifest, runPaths, writeManifest } from '../../run/store/run-folder.ts'
import { openRunReader } from '../../run/store/store.ts'

let folder: string
let run: string
let copies = 0

const words = (...more: string[]): string[] => [
  'roll',
  ...['--policy', `scripted:${join(folder, 'answers.jsonl')}`],
  ...['--environment', 'calculator', '--tasks', join(folder, 'tasks.jsonl')],
  ...['--group', '2', ...more],
]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'espalier-resume-'))
  run = join(folder, 'run')
  const tasks = [1, 2, 3, 4].map(id => JSON.stringify({ id, prompt: '1+1?', answer: '2' }))
  writeFileSync(join(folder, 'tasks.jsonl'), `${tasks.join('\n')}\n`)
  writeFileSync(join(folder, 'answers.jsonl'), '{"text":"2"}\n')
  expect((await runCommand(words('--out', run))).code).toBe(0)
})

/** A copy of the finished run, with its journal changed. */
function damaged(change: (journal: string) => void): string {
  const copy = join(folder, `copy-${copies++}`)
  cpSync(run, copy, { recursive: true })
  change(runPaths(copy).journal)
  return copy
}

async function rowsOf(from: string): Promise<string> {
  const out = join(folder, 'rows.jsonl')
  const { code, stderr } = await runCommand(['export', from, '--to', 'jsonl', '--out', out])
  if (code !== 0) throw new Error(stderr)
  return readFileSync(out, 'utf8').replaceAll(/"run":"[^"]*"/g, '')
}

const cuts: Readonly<Record<string, (journal: string) => void>> = {
  torn: journal => truncateSync(journal, statSync(journal).size - 1),
  'cut in half': journal => truncateSync(journal, statSync(journal).size >> 1),
  empty: journal => truncateSync(journal, 0),
  missing: journal => rmSync(journal),
}

describe('[P1] a finished run whose journal is', () => {
  it.each(Object.entries(cuts))('%s is refused, and resumed to the same rows', async (_, cut) => {
    const copy = damaged(cut)
    for (const command of [['show'], ['show', '--report']]) {
      const [name, ...flags] = command
      const { code, stderr } = await runCommand([name!, copy, ...flags])
      expect([code, stderr]).toEqual([1, expect.stringContaining(`${copy} is damaged: it was`)])
      expect(stderr).toMatch(/`[^`]*resume [^`]*` rolls what is missing/)
    }
    await expect(rowsOf(copy)).rejects.toThrow('is damaged')
    const resumed = await runCommand(['resume', copy])
    expect([resumed.code, resumed.stderr]).toEqual([
      0,
      expect.stringContaining('what is missing is rolled again'),
    ])
    expect(await rowsOf(copy)).toBe(await rowsOf(run))
    expect((await runCommand(['resume', copy])).stderr).toContain('nothing is left to do')
  })

  it('of an earlier version, which noted no length, is read while it ends with a whole frame', async () => {
    const copy = damaged(() => undefined)
    const manifestOf = (): string => readFileSync(runPaths(copy).manifest, 'utf8')
    const forget = (): void =>
      writeFileSync(runPaths(copy).manifest, manifestOf().replace(/,\s*"journalBytes": \d+/, ''))
    forget()
    expect(manifestOf()).not.toContain('journalBytes')
    expect(await rowsOf(copy)).toBe(await rowsOf(run))
    cuts.torn!(runPaths(copy).journal)
    await expect(rowsOf(copy)).rejects.toThrow('is damaged')
    expect((await runCommand(['resume', copy])).code).toBe(0)
    expect(await rowsOf(copy)).toBe(await rowsOf(run))
  })

  it('damaged within is not called finished by resume', async () => {
    const copy = damaged(journal => {
      const bytes = readFileSync(journal)
      bytes[40] = bytes[40]! ^ 1
      writeFileSync(journal, bytes)
    })
    const { code, stderr } = await runCommand(['resume', copy])
    expect([code, stderr]).toEqual([1, expect.stringContaining('is damaged at byte 19')])
  })

  it('cut after training is refused by resume too: the weights that sampled it are gone', async () => {
    const copy = damaged(cuts.torn!)
    const manifest = readFileSync(runPaths(copy).manifest, 'utf8')
    writeFileSync(runPaths(copy).manifest, manifest.replace('"kind": "roll"', '"kind": "train"'))
    const { code, stderr } = await runCommand(['resume', copy])
    expect([code, stderr]).toEqual([1, expect.stringContaining('cannot be rolled again')])
  })
})

it('[P1] new scores are part of a finished run: losing them is noticed', async () => {
  const copy = damaged(() => undefined)
  const reward = join(folder, 'reward.mjs')
  writeFileSync(reward, 'export const half = () => 0.5\n')
  expect((await runCommand(['score', copy, '--reward', `${reward}#half`])).code).toBe(0)
  truncateSync(runPaths(copy).journal, statSync(runPaths(run).journal).size)
  await expect(rowsOf(copy)).rejects.toThrow('is damaged')
})

it('[P1] what a full disk or a kill took of the end of a finished run is written by resume', async () => {
  const out = join(folder, 'measured')
  const results = join(folder, 'results.json')
  const [, , , ...others] = words()
  const policy = ['--policy', `scripted:${join(folder, 'answers.jsonl')}`]
  const measured = others.slice(0, others.indexOf('--group'))
  const evaluating = ['eval', ...policy, ...measured, '--results', results, '--out', out]
  expect((await runCommand(evaluating)).code).toBe(0)
  const before = [results, runPaths(out).report].map(file => JSON.parse(readFileSync(file, 'utf8')))
  for (const file of [results, runPaths(out).report]) rmSync(file)
  const { code, stderr } = await runCommand(['resume', out])
  expect([code, stderr]).toEqual([0, expect.stringContaining('results.json written now')])
  const [again, report] = [results, runPaths(out).report].map(file =>
    JSON.parse(readFileSync(file, 'utf8')),
  )
  expect(again).toEqual(before[0])
  expect(report.outcomes).toEqual(before[1].outcomes)
  expect((await runCommand(['resume', out])).stderr).toContain('nothing is left to do')
})

it('[P1] a run that is not finished may have a torn tail', async () => {
  const copy = damaged(cuts.torn!)
  await writeManifest(copy, { ...(await readManifest(copy)), status: 'running' })
  expect(await readManifest(copy)).not.toHaveProperty('journalBytes')
  expect((await runCommand(['show', copy])).code).toBe(0)
})

it('a folder that another process writes is a misuse, with what can be done', async () => {
  const copy = damaged(() => undefined)
  await using _lock = await lockFile(runPaths(copy).lock)
  const { code, stderr } = await runCommand(words('--out', copy))
  expect([code, stderr]).toEqual([2, expect.stringMatching(/by process \d+: wait until it ends/)])
})

it('[O1] a reward has as long as --reward-seconds says, in what resumes or scores the run too', async () => {
  const file = join(folder, 'slow.mjs')
  writeFileSync(file, 'export const slow = () => new Promise(() => {})\n')
  const out = join(folder, 'slow')
  const late = 'reward part "slow" took longer than 0.05 s'
  const rewarded = ['--reward', `${file}#slow`, '--reward-seconds', '0.05', '--out', out]
  await runCommand(words(...rewarded, '--budget', '{"trajectories":2}'))
  const reasons = async (): Promise<unknown[]> => {
    const found: unknown[] = []
    await using reader = await openRunReader(out)
    for await (const { group } of reader.groups()) {
      for (const { outcome } of group.unscored) found.push('message' in outcome && outcome.message)
    }
    return found
  }
  expect(await reasons()).toEqual([late, late])
  await runCommand(['resume', out, '--no-budget'])
  expect(await reasons()).toEqual(Array.from({ length: 8 }, () => late))
  expect((await runCommand(['score', out, '--trust'])).stdout).toContain(late)
})
