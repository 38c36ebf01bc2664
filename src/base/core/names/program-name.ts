import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

let word: string | undefined

/** How a person calls this program: `espalier` if that is on their path, `npx espalier` elsewhere. */
function programName(): string {
  word ??= isOnPath(process.env.PATH ?? '') ? 'espalier' : 'npx espalier'
  return word
}

/** Ignores the project folders that npx adds to PATH, which the user's own shell does not have. */
function isOnPath(path: string): boolean {
  return path
    .split(delimiter)
    .some(folder => !folder.includes('node_modules') && existsSync(join(folder, 'espalier')))
}

/** A command as it can be pasted: words with characters that a shell reads are quoted. */
export function commandLine(...words: readonly string[]): string {
  return [programName(), ...words.map(quoted)].join(' ')
}

/** A word as it can be pasted into a shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./#~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
