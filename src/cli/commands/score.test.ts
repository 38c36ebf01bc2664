import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCommand } from '../../../test/command-line.ts'
import { readManifest, writeManifest } from '../../run/store/run-folder.ts'

const folder = mkdtempSync(join(tmpdir(), 'espalier-score-'))
const at = (name: string): string => join(folder, name)

async function run(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(words)
  expect(code, stderr).toBe(0)
  return stdout
}

it('scores an imported run, which names no policy', async () => {
  writeFileSync(at('answers.jsonl'), ['2', '3'].map(text => `{"text":"${text}"}\n`).join(''))
  writeFileSync(at('tasks.jsonl'), '{"id":"a","prompt":"1+1?","answer":"2"}\n')
  const tasks = ['--tasks', at('tasks.jsonl')]
  const policy = ['--policy', `scripted:${at('answers.jsonl')}`]
  const environment = ['--environment', 'calculator']
  await run('roll', ...policy, ...environment, ...tasks, '--group', '2', '--out', at('run'))
  await run('export', at('run'), '--to', 'jsonl', '--out', at('rows'))
  await run('import', at('rows'), '--from', 'jsonl', ...tasks, '--out', at('imported'))
  const said = await run('score', at('imported'), ...environment)
  expect(said).toContain('2 trajectories in 1 groups scored')
})

it('does not begin to watch what it would refuse each time', async () => {
  const out = at('watched')
  const words = ['--policy', 'embedded', '--environment', 'desk', '--tasks', '1', '--group', '1']
  await run('roll', ...words, '--out', out)
  const manifest = await readManifest(out)
  const config = { ...manifest.config, environment: './own.mjs#world' }
  await writeManifest(out, { ...manifest, config })
  const { code, stderr } = await runCommand(['score', out, '--watch'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('--watch runs no code')])
})
