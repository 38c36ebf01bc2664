import { spawnSync } from 'node:child_process'
import { cpSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { blocksOf, commandsIn, wordsIn } from '../pages.ts'
import { program } from './cli.ts'

/** The commands of a page that can be run anywhere, block after block. */
export function commandsOf(page: string): readonly string[] {
  return blocksOf(page)
    .filter(({ language, note }) => language === 'sh' && note === undefined)
    .flatMap(({ code }) => commandsIn(code))
}

/** The words after the program's name, with the quotes of a shell taken off. */
export const wordsOf = (command: string): readonly string[] =>
  wordsIn(command.replace(/^(npx )?espalier /, ''))

/** What one command of a page printed, and how long it took. */
export interface Followed {
  readonly command: string
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
  readonly seconds: number
}

/** Follows the page from an environment to a trained model in a folder, as it stands or with another seed. */
export function* followTriage(folder: string, seed = 0): Generator<Followed> {
  cpSync('examples/triage', folder, { recursive: true })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  for (const command of commandsOf('docs/start/your-environment.md')) {
    const words = wordsOf(command)
    const seeded = seed !== 0 && ['teach', 'roll', 'train', 'eval'].includes(words[0]!)
    const start = performance.now()
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [program, ...words, ...(seeded ? ['--seed', `${seed}`] : [])],
      { cwd: folder, encoding: 'utf8' },
    )
    yield { command, status, stdout, stderr, seconds: (performance.now() - start) / 1000 }
  }
}
