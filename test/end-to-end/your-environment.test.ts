import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratch } from './cli.ts'
import { followTriage, wordsOf } from './page-commands.ts'

it('the page from an environment to a trained model comes to 0.9, in eight commands', {
  timeout: 600_000,
}, () => {
  const folder = scratch()
  const said = new Map<string, string>()
  let commands = 0
  for (const { command, status, stdout, stderr } of followTriage(folder)) {
    commands++
    expect(status, `${command}\n${stderr}`).toBe(0)
    said.set(wordsOf(command)[0]!, stdout)
    expect(stderr, command).not.toMatch(/^WARNING/m)
  }
  expect(commands).toBeLessThanOrEqual(8)
  const [, before, after] = /success (\S+) before, (\S+) after/.exec(said.get('train')!) ?? []
  expect(Number(before)).toBeLessThan(0.9)
  expect(Number(after)).toBeGreaterThan(Number(before))
  // Of tickets that nobody looked at while the settings of the page were chosen.
  const [, fresh] = /^ *success +([\d.]+) %/m.exec(said.get('eval')!) ?? []
  expect(Number(fresh) / 100).toBeGreaterThanOrEqual(0.9)
  expect(readFileSync(join(folder, 'rows.jsonl'), 'utf8').length).toBeGreaterThan(1000)
})
