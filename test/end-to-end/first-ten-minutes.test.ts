import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { program, scratch } from './cli.ts'

/** The commands of a page, block after block; a comment before a block keeps it from being run. */
function commandsOf(page: string): readonly string[] {
  const blocks = readFileSync(page, 'utf8').matchAll(
    /(<!-- not run: [^>]*-->\n)?```sh\n([\s\S]*?)```/g,
  )
  return [...blocks].flatMap(([, comment, code]) =>
    comment ? [] : code!.split('\n').filter(line => line.trim() !== ''),
  )
}

it('every command of the first ten minutes works', { timeout: 180_000 }, () => {
  let folder = scratch()
  const commands = commandsOf('docs/first-ten-minutes.md')
  expect(commands.length).toBeGreaterThan(10)
  for (const command of commands) {
    if (command.startsWith('cd ')) {
      folder = join(folder, command.slice(3))
      continue
    }
    const words = command.replace(/^npx espalier /, '').split(' ')
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(status, `${command}\n${stderr}`).toBe(0)
    expect(stdout, command).not.toBe('')
  }
})
