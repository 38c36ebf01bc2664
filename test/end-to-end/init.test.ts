import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readLines, scratch, start } from './cli.ts'

const root = resolve('.')

async function init(): Promise<string> {
  const folder = join(scratch(), 'pears')
  const { code, stderr } = await start(['init', folder]).finished
  expect(code, stderr).toBe(0)
  return folder
}

describe('espalier init', () => {
  it('writes a project that rolls at once, without a server and without installing anything', async () => {
    const folder = await init()
    const run = (...words: string[]) => start(words, { folder }).finished
    const rolled = await run('roll', '--profile', 'laptop', '--json')
    expect(rolled.code, rolled.stderr).toBe(0)
    expect(JSON.parse(rolled.stdout.trim().split('\n').at(-1)!)).toMatchObject({
      run: 'runs/0001',
      trees: 12,
      outcomes: { completed: 12 },
    })
    expect((await run('export', 'runs/0001', '--to', 'jsonl', '--out', 'rows.jsonl')).code).toBe(0)
    const rewards = readLines(join(folder, 'rows.jsonl')).map(({ reward }) => reward)
    expect(new Set(rewards)).toEqual(new Set([1.1, 0.1]))
    const plan = await run('roll', '--dry-run')
    expect(plan.stdout).toContain(
      'policy       ["sglang:http://localhost:30000"]  (espalier.config.ts)',
    )
    const checked = await run('check', './shop.ts#shop', '--tasks', 'tasks.jsonl')
    expect(checked.code, checked.stdout).toBe(0)
    const again = await run('init')
    expect([again.code, again.stderr]).toEqual([
      2,
      expect.stringContaining('already has package.json'),
    ])
  })

  it('writes a test that passes and types that hold', async () => {
    const folder = await init()
    mkdirSync(join(folder, 'node_modules'))
    for (const name of ['vitest', 'zod']) {
      symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
    }
    symlinkSync(root, join(folder, 'node_modules', 'espalier'))
    const tested = spawnSync(
      process.execPath,
      [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder],
      { cwd: folder, encoding: 'utf8' },
    )
    expect(tested.stdout + tested.stderr).toContain('1 passed')
    const config = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8'))
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ ...config, include: ['shop.ts', 'shop.test.ts', 'espalier.config.ts'] }),
    )
    const typed = spawnSync(
      process.execPath,
      [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder],
      { encoding: 'utf8' },
    )
    expect([typed.stdout, typed.status]).toEqual(['', 0])
  })
})

it.each([
  ['help', 'init'],
  ['--help', 'init'],
  ['init', '-h'],
  ['init', '--help'],
])('%s %s shows the help of the command', async (...words) => {
  const { code, stdout } = await start(words).finished
  expect([code, stdout.split('\n')[0]]).toEqual([0, 'Usage: espalier init [DIR]'])
})

it('help of a command that does not exist is misuse', async () => {
  const { code, stderr } = await start(['help', 'inti']).finished
  expect([code, stderr]).toEqual([2, 'espalier: no command "inti". Did you mean "init"?\n'])
})
