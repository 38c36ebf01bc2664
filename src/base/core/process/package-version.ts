import { readFileSync } from 'node:fs'
import { packageFolder } from './package-folder.ts'

/** The version of this package. */
export function packageVersion(): string {
  const url = new URL('package.json', packageFolder)
  return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version
}
