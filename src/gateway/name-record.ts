import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { TreeId } from '../core/ids.ts'

/** The names that clients chose for the attempts of a run, which are each good for one. */
export interface NameRecord {
  /** Whether an attempt that was closed has this name. */
  has(name: string): boolean
  /** Takes a name for good, before the attempt's tree is written. */
  take(name: string, tree: TreeId): Promise<void>
  /** Gives a name back whose attempt was deleted by its client. */
  free(name: string): Promise<void>
}

const line = z.strictObject({ name: z.string(), tree: z.string().nullable() })

/** The file of a run folder that keeps names: the journal itself has attempts by task and number. */
const file = 'names.jsonl'

/**
 * Opens the names of a run. A name was taken only if the journal holds its tree: a gateway that was
 * killed between the two has no such attempt.
 */
export async function openNameRecord(
  out: string,
  isKept: (tree: TreeId) => boolean,
): Promise<NameRecord> {
  const path = join(out, file)
  const taken = await readNames(path, isKept)
  const write = (name: string, tree: TreeId | null): Promise<void> =>
    // A line that a kill cut off in the middle ends here, and is skipped.
    appendFile(path, `\n${JSON.stringify({ name, tree })}`)
  return {
    has: name => taken.has(name),
    async take(name, tree) {
      taken.add(name)
      await write(name, tree)
    },
    async free(name) {
      if (taken.delete(name)) await write(name, null)
    },
  }
}

async function readNames(path: string, isKept: (tree: TreeId) => boolean): Promise<Set<string>> {
  const text = await readFile(path, 'utf8').catch(missing)
  const trees = new Map<string, string>()
  const names = new Map<string, string | null>()
  for (const each of text.split('\n')) {
    const read = readLine(each)
    if (!read) continue
    names.set(read.name, read.tree)
    // A tree that was never written may have been made again under another name.
    if (read.tree !== null) trees.set(read.tree, read.name)
  }
  const kept = [...names].filter(
    ([name, tree]) => tree !== null && trees.get(tree) === name && isKept(tree as TreeId),
  )
  return new Set(kept.map(([name]) => name))
}

function missing(cause: unknown): string {
  if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
  throw cause
}

function readLine(text: string): z.infer<typeof line> | undefined {
  try {
    return line.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
