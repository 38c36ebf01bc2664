import { existsSync, statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { commandLine, quoted } from '../../base/core/names/program-name.ts'
import { openNamed } from '../../run/settings/open-named.ts'
import { isRun } from '../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { initFiles } from '../init-files.ts'

/** Writes a small project that runs at once. */
export const initCommand: Command = {
  name: 'init',
  usage: '[DIR]',
  about:
    'Writes an environment with two tools, a few tasks, a config with a `laptop` profile that needs\n' +
    'no server, and a test with a scripted policy. Files that are already there are never changed.',
  examples: ['espalier init pears && cd pears && npx espalier roll --profile laptop'],
  settings: [],
  positionalCount: [0, 1],
  run: runInit,
}

async function runInit({ positionals: words, terminal, json }: Invocation): Promise<number> {
  const folder = words[0] ?? '.'
  const files = initFiles(
    basename(resolve(folder))
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-'),
  )
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new MisuseError(`${folder} is a file: name a folder`)
  }
  if (isRun(folder)) throw new MisuseError(`${folder} holds a run: name an empty folder`)
  const existing = Object.keys(files).filter(name => existsSync(join(folder, name)))
  if (existing.length > 0) {
    throw new MisuseError(`${folder} already has ${existing.join(', ')}: name an empty folder`)
  }
  await openNamed(folder, () => mkdir(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  if (json) terminal.print(JSON.stringify({ folder, files: Object.keys(files) }))
  else for (const name of Object.keys(files)) terminal.print(join(folder, name))
  const enter = resolve(folder) === process.cwd() ? '' : `cd ${quoted(folder)} && `
  terminal.tell(`next  ${enter}${commandLine('roll', '--profile', 'laptop')}`)
  return 0
}
