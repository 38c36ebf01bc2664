import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { nearest } from './nearest.ts'

/** What an error about a file that is not there adds: a question with the nearest name beside it, or nothing. */
export function nearFile(path: string): string {
  const folder = dirname(path)
  // Where the folder is not there either, it is the folder's name that is wrong.
  if (!existsSync(folder) && folder !== path) return nearFile(folder)
  try {
    const near = nearest(basename(path), readdirSync(folder))
    if (near === undefined) return ''
    const found = join(folder, near)
    return ` Did you mean ${path.startsWith('./') ? `./${found}` : found}?`
  } catch {
    // Without a folder there is nothing beside it.
    return ''
  }
}
