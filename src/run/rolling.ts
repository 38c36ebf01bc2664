import type { Group } from '../core/group.ts'
import type { GroupId, TreeId } from '../core/ids.ts'
import type { Tree } from '../core/tree.ts'
import { newManifest } from './manifest.ts'
import { type RollParts, rollGroups } from './roll.ts'
import { createRun, readManifest, writeManifest } from './run-folder.ts'
import { openRunReader, openRunWriter } from './store.ts'
import type { TaskSource } from './tasks.ts'

/** Where a run is kept, and what is written about it. */
export interface RunRecord {
  readonly out: string
  readonly kind: string
  readonly config: Readonly<Record<string, unknown>>
  /** Whether it goes on with what the folder already holds. */
  readonly resumes?: boolean
}

/** Rolls groups into a run folder; what was finished before an interruption is never rolled again. */
export async function* rollIntoRun<Data>(
  tasks: TaskSource<Data>,
  parts: RollParts<Data>,
  record: RunRecord,
): AsyncGenerator<Group> {
  const { out, kind, config, resumes = false } = record
  if (!resumes) await createRun(out, newManifest(kind, config))
  const before = resumes ? await readFinished(out) : undefined
  const writer = await openRunWriter(out)
  try {
    yield* rollGroups(tasks, { ...parts, writer, ...before })
    const manifest = await readManifest(out)
    await writer.sync()
    await writeManifest(out, {
      ...manifest,
      status: 'finished',
      finished: new Date().toISOString(),
    })
  } finally {
    await writer[Symbol.asyncDispose]()
  }
}

/** What of a run is finished: whole groups, and trees whose group is not. */
async function readFinished(
  out: string,
): Promise<{ finished: ReadonlySet<GroupId>; known: ReadonlyMap<TreeId, Tree> }> {
  const reader = await openRunReader(out)
  try {
    const known = new Map<TreeId, Tree>()
    for await (const tree of reader.looseTrees()) known.set(tree.id, tree)
    return { finished: reader.finishedGroups, known }
  } finally {
    await reader[Symbol.asyncDispose]()
  }
}
