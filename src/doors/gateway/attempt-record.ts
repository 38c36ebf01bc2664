import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Task } from '../../base/core/environment.ts'
import { appenderTo } from '../../base/core/files/appender.ts'
import type { TreeId } from '../../base/core/ids.ts'
import { jsonWithoutSecrets } from '../../base/core/process/secrets.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import { groupOf } from '../../run/store/store.ts'

/** What a run keeps of attempts besides their trees: names, each good for one of them, and what was sent for tasks. */
export interface AttemptRecord {
  /** Whether an attempt that was closed has this name. */
  has(name: string): boolean
  /** Takes an attempt's name for good and keeps its task's data, before its tree is written. */
  keep(attempt: Recorded, tree: TreeId): Promise<void>
  /** Gives a name back whose attempt was deleted by its client. */
  free(name: string): Promise<void>
  /** The task of an attempt that was kept, if its client sent the data. */
  taskOf(tree: Tree): Task | undefined
}

/** An attempt as far as it is kept here. */
export interface Recorded {
  readonly id: string
  /** Whether a client chose its id. */
  readonly isNamed: boolean
  readonly task: Task
}

/** What a record is opened with. */
export interface RecordOptions {
  /** Whether the journal holds a tree, but not yet its group. */
  readonly isLoose: (tree: TreeId) => boolean
  /** Whether it holds a tree and its group. */
  readonly isGathered: (tree: TreeId) => boolean
  /** Whether the data of a task will be there without this record. */
  readonly isKnown: (task: Task) => boolean
}

const line = z.union([
  z.strictObject({ name: z.string(), tree: z.string().nullable() }),
  z.strictObject({ tree: z.string(), data: z.unknown() }),
])

/** The file of a run folder that keeps them: the journal itself has attempts by task and number. */
const file = 'names.jsonl'

/**
 * Opens the record of a run. A name was taken only if the journal holds its tree: a gateway that was
 * killed between the two has no such attempt.
 */
export async function openAttemptRecord(
  out: string,
  options: RecordOptions,
): Promise<AttemptRecord> {
  const path = join(out, file)
  const { taken, data } = await readRecord(path, options)
  const records = appenderTo(path)
  const write = async (...entries: z.infer<typeof line>[]): Promise<void> => {
    await records.append(entries.map(entry => `${jsonWithoutSecrets(entry)}\n`).join(''))
  }
  return {
    has: name => taken.has(name),
    async keep({ id, isNamed, task }, tree) {
      const isSent = !options.isKnown(task) && !isDeepStrictEqual(task.data, { id: task.id })
      if (isNamed) taken.add(id)
      const named = isNamed ? [{ name: id, tree }] : []
      const sent = isSent ? [{ tree, data: task.data }] : []
      if (isNamed || isSent) await write(...named, ...sent)
    },
    async free(name) {
      if (taken.delete(name)) await write({ name, tree: null })
    },
    taskOf: ({ id, task }) => (data.has(id) ? { id: task, data: data.get(id) } : undefined),
  }
}

/** Opens the record of a run by what its journal held when it was opened. */
export function openNames(
  out: string,
  {
    known,
    finished,
    isKnown,
  }: Pick<RollParts, 'known' | 'finished'> & Pick<RecordOptions, 'isKnown'>,
): Promise<AttemptRecord> {
  return openAttemptRecord(out, {
    isLoose: tree => known?.has(tree) === true,
    isGathered: tree => finished?.has(groupOf(tree)) === true,
    isKnown,
  })
}

async function readRecord(
  path: string,
  { isLoose, isGathered }: RecordOptions,
): Promise<{ readonly taken: Set<string>; readonly data: ReadonlyMap<string, unknown> }> {
  const trees = new Map<string, string>()
  const names = new Map<string, string | null>()
  const data = new Map<string, unknown>()
  for await (const read of linesOf(path)) {
    if ('data' in read) {
      if (isLoose(read.tree as TreeId)) data.set(read.tree, read.data)
      continue
    }
    names.set(read.name, read.tree)
    // A tree that was never written may have been made again under another name.
    if (read.tree !== null) trees.set(read.tree, read.name)
  }
  const isKept = (tree: TreeId): boolean => isLoose(tree) || isGathered(tree)
  const kept = [...names].filter(
    ([name, tree]) => tree !== null && trees.get(tree) === name && isKept(tree as TreeId),
  )
  return { taken: new Set(kept.map(([name]) => name)), data }
}

async function* linesOf(path: string): AsyncGenerator<z.infer<typeof line>> {
  const input = createReadStream(path)
  try {
    for await (const text of createInterface({ input })) {
      const read = readLine(text)
      if (read) yield read
    }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause
  }
}

function readLine(text: string): z.infer<typeof line> | undefined {
  try {
    return line.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
