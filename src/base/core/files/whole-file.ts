import { randomBytes } from 'node:crypto'
import { open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A name for a draft of a file, which nobody can have put a link at before. */
export function draftOf(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}.draft`
}

/** Writes a file so that readers see the old or the new one; a link at its place is replaced, not followed. */
export async function writeWhole(
  path: string,
  content: string | Uint8Array | Iterable<Uint8Array>,
  { isSynced = false }: { readonly isSynced?: boolean } = {},
): Promise<void> {
  const draft = draftOf(path)
  try {
    const file = await open(draft, 'wx')
    try {
      const pieces =
        typeof content === 'string' || content instanceof Uint8Array ? [content] : content
      for (const piece of pieces) await file.writeFile(piece)
      if (isSynced) await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => {})
    throw cause
  }
}

/** Removes drafts that killed writers left. Only whoever is a folder's only writer may do so. */
export async function removeDrafts(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  for (const name of names) {
    if (/\.[0-9a-f]{12}\.draft$/.test(name)) await rm(join(folder, name), { force: true })
  }
}
