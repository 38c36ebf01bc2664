import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { runCommand } from '../../test/command-line.ts'

const home = process.cwd()
afterEach(() => process.chdir(home))

/** Answers by task: `a` is right twice, `b` wrong, `c` right once in the other script. */
function script(folder: string, name: string, answers: Readonly<Record<string, string>>): string {
  const file = join(folder, name)
  const lines = Object.entries(answers).map(([task, text]) => JSON.stringify({ task, text }))
  writeFileSync(file, lines.join('\n'))
  return file
}

async function rollTwo() {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-commands-'))
  const tasks = join(folder, 'tasks.jsonl')
  const lines = ['a', 'b', 'c'].map(id => JSON.stringify({ id, prompt: `say ${id}`, answer: id }))
  writeFileSync(tasks, lines.join('\n'))
  const one = script(folder, 'one.jsonl', { a: 'a', b: 'a rather long wrong answer', c: 'x' })
  const two = script(folder, 'two.jsonl', { a: 'wrong', b: 'wrong', c: 'c' })
  const runs: string[] = []
  for (const answers of [one, two]) {
    const out = join(folder, `run-${runs.length}`)
    const words = ['--environment', 'single-turn', '--reward', 'exact-match', '--tasks', tasks]
    const { code, stderr } = await runCommand([
      ...['eval', '--policy', `scripted:${answers}`, ...words, '--trials', '2', '--out', out],
      ...['--results', `${out}.json`],
    ])
    expect(code, stderr).toBe(0)
    runs.push(out)
  }
  return { folder, tasks, one, runs: runs as [string, string] }
}

describe('eval', () => {
  it('measures success, pass@k and pass^k, and writes results', async () => {
    const { runs } = await rollTwo()
    const results = JSON.parse(readFileSync(`${runs[0]}.json`, 'utf8'))
    expect(results).toMatchObject({ tasks: 3, trials: 6, unscored: 0 })
    expect(results.success.value).toBeCloseTo(1 / 3)
    expect(results.success.low).toBeLessThan(1 / 3)
    expect(Object.keys(results.passAtK)).toEqual(['1', '2'])
    expect(results.passHatK['2'].value).toBeCloseTo(1 / 3)
    expect(results.byTask.map((each: { successes: number }) => each.successes)).toEqual([2, 0, 0])
  })

  it('prints one JSON object, and nothing else on stdout', async () => {
    const { folder, tasks, one } = await rollTwo()
    const { stdout } = await runCommand([
      ...['eval', '--policy', `scripted:${one}`, '--environment', 'single-turn', '--json'],
      ...['--reward', 'exact-match', '--tasks', tasks, '--out', join(folder, 'third')],
    ])
    expect(JSON.parse(stdout)).toMatchObject({ tasks: 3, trials: 3 })
  })
})

describe('compare', () => {
  it('pairs tasks, tells what was gained and lost, and fails below a limit', async () => {
    const { runs } = await rollTwo()
    const { code, stdout } = await runCommand(['compare', ...runs, '--json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ tasks: 3, gained: ['c'], lost: ['a'] })
    expect(JSON.parse(stdout).success.difference).toBeCloseTo(0)
    expect((await runCommand(['compare', ...runs, '--fail-below', '-0.1'])).code).toBe(0)
    // By the upper bound: no change over three tasks may well be a tenth.
    expect((await runCommand(['compare', ...runs, '--fail-below', '0.1'])).code).toBe(0)
    expect((await runCommand(['compare', ...runs, '--fail-below', '1.1'])).code).toBe(1)
    const people = await runCommand(['compare', ...runs])
    expect(people.stdout).toContain('gained   1: c')
  })
})

describe('score', () => {
  it('scores again, lists flips, and keeps the new scores where exports find them', async () => {
    const { folder, tasks } = await rollTwo()
    const answers = join(folder, 'mixed.jsonl')
    writeFileSync(answers, ['"t"', '"t"'].map(() => JSON.stringify({ text: 'a' })).join('\n'))
    const out = join(folder, 'scored')
    await runCommand([
      ...['roll', '--policy', `scripted:${answers}`, '--environment', 'single-turn'],
      ...['--reward', 'exact-match', '--tasks', tasks, '--group', '2', '--out', out],
    ])
    const reward = join(folder, 'reward.ts')
    writeFileSync(
      reward,
      'export const member = ({ trajectory }: { trajectory: { id: string } }): number => Number(trajectory.id.split("/")[1])\n',
    )
    const first = await runCommand([
      'score',
      out,
      '--reward',
      `${reward}#member`,
      '--dry-run',
      '--json',
    ])
    expect(first.code, first.stderr).toBe(0)
    const summary = JSON.parse(first.stdout.trim().split('\n').at(-1)!)
    expect(summary).toMatchObject({ groups: 3, scored: 6, changed: 3, flips: 0 })
    const before = await runCommand(['show', out, '--json'])
    expect(before.stdout).toContain('"rewards":[1,1]')
    await runCommand(['score', out, '--reward', `${reward}#member`])
    expect((await runCommand(['show', out, '--json'])).stdout).toContain('"rewards":[0,1]')
    writeFileSync(
      join(folder, 'other.ts'),
      'export const turned = ({ trajectory }: { trajectory: { id: string } }): number => -Number(trajectory.id.split("/")[1])\n',
    )
    const { stdout } = await runCommand([
      'score',
      out,
      '--reward',
      `${join(folder, 'other.ts')}#turned`,
    ])
    expect(stdout).toContain('flip  a: a/1/0 1 → -1, now below a/0/0 0 →')
    expect(stdout).toContain('3 pairs in 3 groups changed places')
  })

  it('H8: --dry-run runs no code that a received run names', async () => {
    const { folder, tasks } = await rollTwo()
    const answers = join(folder, 'mixed.jsonl')
    writeFileSync(answers, JSON.stringify({ text: 'a' }))
    const code = join(folder, 'planted.ts')
    const trace = join(folder, 'trace')
    writeFileSync(
      code,
      `import { writeFileSync } from 'node:fs'
      const leave = () => writeFileSync(${JSON.stringify(trace)}, '')
      export const one = (): number => (leave(), 1)
      export const all = { name: 'all', judge: () => (leave(), { keep: true }) }`,
    )
    const parts = [
      ['--reward', `${code}#one`],
      ['--filter', `${code}#all`],
    ]
    for (const [index, part] of parts.entries()) {
      const out = join(folder, `received-${index}`)
      const rolled = await runCommand([
        ...['roll', '--policy', `scripted:${answers}`, '--environment', 'single-turn'],
        ...['--tasks', tasks, '--out', out, ...part],
      ])
      expect(existsSync(trace), rolled.stderr).toBe(true)
      rmSync(trace)
      const { code: exit, stderr } = await runCommand(['score', out, '--dry-run'])
      expect([exit, existsSync(trace)]).toEqual([2, false])
      expect(stderr).toContain('runs no code and asks no server that a run names')
    }
  })

  it('H8: --dry-run opens nothing else that a received run names, show and export open nothing at all', async () => {
    const { folder, runs } = await rollTwo()
    const [run] = runs
    const trace = join(folder, 'trace')
    const code = join(folder, 'planted.ts')
    writeFileSync(
      code,
      `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(trace)}, '')\nexport const part = {}`,
    )
    const path = join(run, 'run.json')
    const manifest = JSON.parse(readFileSync(path, 'utf8')) as { config: object }
    const plant = (more: object): void => {
      const config = { ...manifest.config, reward: ['exact-match'], ...more }
      writeFileSync(path, JSON.stringify({ ...manifest, config }))
    }
    for (const more of [
      ...['python:os.path', 'harbor:.', 'tau2:retail,root=.', 'openenv:http://127.0.0.1:9'].map(
        environment => ({ environment }),
      ),
      { environment: `${code}#part` },
      { judge: 'openai:http://127.0.0.1:9' },
    ]) {
      plant(more)
      const { code: exit, stderr } = await runCommand(['score', run, '--dry-run'])
      const told = expect.stringContaining(`if ${Object.values(more)[0]} is yours`)
      expect([exit, stderr]).toEqual([2, told])
    }
    const part = `${code}#part`
    plant({ environment: part, reward: [part], filters: [part], condense: part, strategy: part })
    for (const words of [
      ['show', run],
      ['show', run, '--report'],
      ['export', run, '--to', 'jsonl', '--out', join(folder, 'rows.jsonl')],
    ]) {
      const { code: exit, stderr } = await runCommand(words)
      expect([words[0], exit], stderr).toEqual([words[0], 0])
    }
    expect(existsSync(trace)).toBe(false)
  })

  it('filters and probes', async () => {
    const { runs } = await rollTwo()
    const filtered = await runCommand(['score', runs[0], '--filter', 'equal-rewards'])
    expect(filtered.stdout).toContain('dropped  0 → 6')
    const { stdout } = await runCommand(['score', runs[0], '--probe', '--json'])
    const probes = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(probes.map(({ probe, reward }) => [probe, reward])).toEqual([
      ['empty', 0],
      ['copied', 0],
      ['format only', 0],
      ['refusal', 0],
    ])
  })
})

describe('show --report and --dry-run', () => {
  it('tell what a run came to, and what another one would', async () => {
    const { runs, tasks, one, folder } = await rollTwo()
    const { stdout } = await runCommand(['show', runs[0], '--report'])
    expect(stdout).toContain('eval finished  3 groups, 6 trajectories in 6 trees')
    expect(stdout).toContain('success    33.3 %')
    const plan = await runCommand([
      ...['roll', '--policy', `scripted:${one}`, '--environment', 'single-turn', '--tasks', tasks],
      ...['--group', '4', '--out', join(folder, 'planned'), '--dry-run', '--json'],
    ])
    expect(JSON.parse(plan.stdout)).toMatchObject({
      tasks: 3,
      attempts: 12,
      requests: { expected: 12, most: 192 },
      perAttempt: { turns: 1, from: expect.stringContaining('6 trajectories') },
    })
    const settings = JSON.parse(plan.stdout).settings as { name: string; from: string }[]
    expect(settings.find(({ name }) => name === 'group')).toEqual({
      name: 'group',
      value: 4,
      from: 'flag',
    })
  })
})
