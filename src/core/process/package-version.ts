import { readFileSync } from 'node:fs'

/** The version of this package. */
export function packageVersion(): string {
  const url = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(url, 'utf8')) as { version: string }).version
}
