import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { program, scratch } from './cli.ts'
import { commandsOf, wordsOf } from './page-commands.ts'

it('every command of the first ten minutes works', { timeout: 180_000 }, () => {
  let folder = scratch()
  const commands = commandsOf('docs/start/first-ten-minutes.md')
  expect(commands.length).toBeGreaterThan(10)
  for (const command of commands) {
    if (command.startsWith('cd ')) {
      folder = join(folder, command.slice(3))
      continue
    }
    const words = wordsOf(command)
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(status, `${command}\n${stderr}`).toBe(0)
    expect(stdout, command).not.toBe('')
  }
})
