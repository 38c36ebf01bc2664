import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCommand } from '../../../test/command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-eval-command-'))

const evaluation = (out: string): readonly string[] => [
  'eval',
  ...['--policy', `scripted:${join(folder, 'answers.jsonl')}`],
  ...['--environment', 'calculator', '--tasks', '2', '--out', join(folder, out)],
]

it('says that nothing was scored, and no success of 0 %', async () => {
  writeFileSync(join(folder, 'answers.jsonl'), '{"text":"2","task":"another"}\n')
  const { code, stdout } = await runCommand(evaluation('words'))
  expect(code).toBe(1)
  expect(stdout).toContain('nothing was scored')
  expect(stdout).not.toMatch(/success {2}|0\.000|%/)
  const { stdout: json } = await runCommand([...evaluation('json'), '--json'])
  expect(JSON.parse(json)).toMatchObject({ trials: 0, success: { value: null } })
})
