import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { OddFileError, oddnessOf } from '../../base/core/files/plain-file.ts'

/** Files that a run may have besides those of its paths. */
const others = [
  'metrics.jsonl',
  'names.jsonl',
  'submissions.jsonl',
  'cluster.json',
  'trackers.json',
]

/**
 * Refuses a run of which a file is a link, a pipe or a device: a folder that somebody else made could name any
 * file of this machine, and reading a pipe never ends.
 */
export async function refuseOddFiles(
  paths: Readonly<Record<string, string>> & {
    readonly manifest: string
    readonly checkpoints: string
    readonly images: string
  },
): Promise<void> {
  const { manifest, checkpoints, images } = paths
  const own = new Set([...Object.values(paths).map(path => basename(path)), ...others])
  const folders = [checkpoints, images].map(path => basename(path))
  const isFile = (name: string): boolean => own.has(name) && !folders.includes(name)
  await refuseIn(dirname(manifest), name => own.has(name), isFile)
  await refuseIn(images, () => true)
  const steps = await refuseIn(checkpoints, () => true)
  for (const step of steps) await refuseIn(join(checkpoints, step), () => true)
}

/** Gives the folders in a folder. */
async function refuseIn(
  folder: string,
  isOwn: (name: string) => boolean,
  isFile: (name: string) => boolean = () => false,
): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const isFolder = entry.isDirectory() && !isFile(entry.name)
    if (entry.isFile() || isFolder || !isOwn(entry.name)) continue
    throw new OddFileError(
      `${join(folder, entry.name)} is ${oddnessOf(entry)}, and a run has files of its own: \`cp -rL\` copies one with what its links name`,
    )
  }
  return entries.filter(entry => entry.isDirectory()).map(({ name }) => name)
}
