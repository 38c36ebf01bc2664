import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../../test/command-line.ts'

const rewards = `
export const broken = ({ task }) => {
  return task.data.nothing.at
}
export const even = ({ task }) => {
  if (Number(task.id) % 2 === 1) throw new Error('cannot judge this')
  return 0.5
}
`

let folder: string
let run: string
const roll = (...words: string[]) =>
  runCommand([
    'roll',
    '--policy',
    `scripted:${join(folder, 'answers.jsonl')}`,
    '--environment',
    'calculator',
    '--tasks',
    join(folder, 'tasks.jsonl'),
    '--group',
    '3',
    ...words,
  ])

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'espalier-keeping-'))
  run = join(folder, 'run')
  const tasks = [1, 2, 3, 4].map(id => JSON.stringify({ id, prompt: '1+1?', answer: '2' }))
  writeFileSync(join(folder, 'tasks.jsonl'), `${tasks.join('\n')}\n`)
  writeFileSync(join(folder, 'answers.jsonl'), '{"text":"2"}\n')
  writeFileSync(join(folder, 'rewards.mjs'), rewards)
  expect((await roll('--out', run)).code).toBe(0)
})

describe('scoring again', () => {
  const score = (...words: string[]) => runCommand(['score', run, ...words])
  const shown = async () =>
    [...(await runCommand(['show', run])).stdout.matchAll(/^(\d) +reward (\S+)/gm)].map(
      ([, id, reward]) => `${id}:${reward}`,
    )
  const good = ['1:1', '2:1', '3:1', '4:1']

  it('keeps the old scores where a reward fails, and says why and where', async () => {
    const { code, stdout } = await score('--reward', `${join(folder, 'rewards.mjs')}#broken`)
    expect(code).toBe(1)
    expect(stdout).toContain('reward   1.000 over 12 → – over 0')
    expect(stdout).toMatch(/12 × completed, but its reward failed: .*at.* \(.*rewards\.mjs:3\)/)
    expect(stdout).toContain('nothing was kept')
    expect(await shown()).toEqual(good)
  })

  it('keeps the groups that could be scored whole where that is asked for', async () => {
    const reward = `${join(folder, 'rewards.mjs')}#even`
    expect((await score('--reward', reward)).code).toBe(1)
    expect(await shown()).toEqual(good)
    const { code, stdout } = await score('--reward', reward, '--partial')
    expect(code).toBe(0)
    expect(stdout).toContain('the new scores of 2 of 4 groups are kept')
    expect(await shown()).toEqual(['1:1', '2:0.5', '3:1', '4:0.5'])
  })
})

describe('a run that fails', () => {
  it('says equal failures of a group once, with their count and their line', async () => {
    const out = join(folder, 'failing')
    const reward = `${join(folder, 'rewards.mjs')}#broken`
    const { code, stdout, stderr } = await roll('--reward', reward, '--out', out)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^1 +reward – +\(3 × completed, but its reward failed: .*:3\)\)$/m)
    expect(stderr).toContain('completed without a reward 12')
    expect((await runCommand(['show', out, '1/0/0'])).stdout).toMatch(/but its reward failed: .*:3/)
  })

  it('leaves no folder behind where a task of its file is wrong', async () => {
    const tasks = join(folder, 'wrong.jsonl')
    writeFileSync(tasks, '{"prompt":"1+1?","answer":"2"}\n{"question":"?"}\n')
    const out = join(folder, 'none')
    const { code, stderr } = await roll('--tasks', tasks, '--out', out)
    expect([code, stderr]).toEqual([2, expect.stringMatching(/wrong\.jsonl:2: Not a task/)])
    expect(existsSync(out)).toBe(false)
  })
})

describe('a file that is written', () => {
  it('never takes the place of a run, or of what is shown', async () => {
    const rows = join(folder, 'rows.jsonl')
    expect((await runCommand(['export', run, '--out', rows])).code).toBe(0)
    const kept = [rows, join(run, 'run.json')].map(file => readFileSync(file, 'utf8'))
    for (const [line, message] of [
      [
        ['export', run, '--out', join(run, 'run.json')],
        /--out .*: this is a file of the run; name/,
      ],
      [['view', run, '--static', join(run, 'run.json')], /--static .*: this is a file of the run/],
      [['view', rows, '--static', rows], /--static .*: this is what is shown; name another file/],
      [['view', folder], /is a folder without a run.json: name a run or a file, such as .*run$/m],
    ] as const) {
      const { code, stderr } = await runCommand([...line])
      expect([code, stderr]).toEqual([2, expect.stringMatching(message)])
    }
    expect([rows, join(run, 'run.json')].map(file => readFileSync(file, 'utf8'))).toEqual(kept)
  })
})
