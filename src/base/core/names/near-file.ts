import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { nearest } from './nearest.ts'

/** A hint for an error about a missing file: a question with the nearest name in its folder, or ''. */
export function nearFile(path: string): string {
  const folder = dirname(path)
  // If the folder is missing too, its name is what is wrong.
  if (!existsSync(folder) && folder !== path) return nearFile(folder)
  try {
    const near = nearest(basename(path), readdirSync(folder))
    if (near === undefined) return ''
    const found = join(folder, near)
    return ` Did you mean ${path.startsWith('./') ? `./${found}` : found}?`
  } catch {
    // The folder cannot be read, so there is no hint.
    return ''
  }
}
