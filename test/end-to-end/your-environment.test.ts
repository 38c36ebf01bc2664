import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { program, scratch } from './cli.ts'
import { commandsOf, wordsOf } from './page-commands.ts'

it('the page from an environment to a trained model comes to 0.9, in eight commands', {
  timeout: 600_000,
}, () => {
  const folder = scratch()
  cpSync('examples/triage', folder, { recursive: true })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  const commands = commandsOf('docs/your-environment.md')
  expect(commands.length).toBeLessThanOrEqual(8)
  const said = new Map<string, string>()
  for (const command of commands) {
    const words = wordsOf(command)
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(status, `${command}\n${stderr}`).toBe(0)
    said.set(words[0]!, stdout)
    expect(stderr, command).not.toMatch(/^WARNING/m)
  }
  const [, before, after] = /success (\S+) before, (\S+) after/.exec(said.get('train')!) ?? []
  expect(Number(before)).toBeLessThan(0.9)
  expect(Number(after)).toBeGreaterThanOrEqual(0.9)
  expect(readFileSync(join(folder, 'rows.jsonl'), 'utf8').length).toBeGreaterThan(1000)
})
