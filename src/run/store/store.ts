import type { FileHandle } from 'node:fs/promises'
import type { Task } from '../../base/core/environment.ts'
import { removeDrafts } from '../../base/core/files/whole-file.ts'
import { type Group, isUseful, type Unscored, type Weighted } from '../../base/core/group.ts'
import {
  type GroupId,
  seatGroup,
  type TaskId,
  type TrajectoryId,
  type TreeId,
  treeOf,
} from '../../base/core/ids.ts'
import type { Gradable, Usage } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { refuseCut } from './cut-journal.ts'
import { decodeFrame } from './frame.ts'
import { type GroupRecord, groupRecord, recordedCredit } from './group-record.ts'
import { type Journal, openJournal } from './journal.ts'
import {
  continueNotes,
  costOfTree,
  type JournalHeader,
  type NotedTree,
  readContents,
} from './journal-index.ts'
import { type HeldLock, type IsLed, lockFile } from './lock.ts'
import { type FramePlace, openToRead, readBytes } from './read-journal.ts'
import { isRun, readManifest, runPaths, sizeOf, writeManifest } from './run-folder.ts'
import { type Segments, segmentsOf } from './segments/segments.ts'
import { treeFromFrame, treeToRunFrame } from './tree-frame.ts'

/** Writes finished trees and groups; both are on disk before their promise resolves (P1). */
export interface RunWriter extends AsyncDisposable {
  writeTree(tree: Tree): Promise<void>
  writeGroup(group: Group, task: Task, order: number): Promise<void>
  /** Writes frames that another thread has encoded, with what they hold. */
  writeSent(sent: SentFrames): Promise<void>
  /** Called when all is written: it survives a power cut, and files that go with the run are whole. */
  complete(): Promise<void>
  /** Whether another process took the run over: this one writes no more. */
  isLost?(): boolean
}

/** Frames of trees, one behind another; the last may be that of their group. */
export interface SentFrames {
  readonly bytes: Buffer
  /** Where the trees lie in them. */
  readonly notes: readonly NotedTree[]
  /** Their group, with its record as JSON. */
  readonly group?: { readonly record: string; readonly stored: StoredGroup }
}

/** Can also write groups of which only the record is left in memory. */
export interface RecordWriter extends RunWriter {
  writeRecord(record: GroupRecord): Promise<void>
}

/**
 * Opens a run for writing; one process at a time, which may hold its lock already. `isLed` is asked for a holder
 * elsewhere.
 */
export async function openRunWriter(
  folder: string,
  held?: HeldLock,
  isLed?: IsLed,
): Promise<RecordWriter> {
  const lock = held ?? (await lockFile(runPaths(folder).lock, undefined, isLed))
  let journal: Journal
  try {
    await removeDrafts(folder)
    await removeDrafts(runPaths(folder).images)
    if (isRun(folder)) {
      refuseCut(folder, await readManifest(folder), sizeOf(runPaths(folder).journal) ?? 0)
    }
    journal = await openJournal(runPaths(folder).journal)
  } catch (error) {
    await lock[Symbol.asyncDispose]()
    throw error
  }
  const notes = await continueNotes(runPaths(folder), journal.size)
  const writeRecord = async (group: GroupRecord): Promise<void> => {
    await lock.check()
    const frame = { header: { kind: 'group', group } satisfies JournalHeader, arrays: [] }
    const place = await journal.append(frame)
    notes?.add(frame, place)
    await notes?.writeFull()
  }
  return {
    async writeTree(tree) {
      await lock.check()
      const place = await journal.append(() => treeToRunFrame(tree))
      notes?.addTree(costOfTree(tree), place)
      await notes?.writeFull()
    },
    writeGroup: (group, task, order) => writeRecord(groupRecord(group, task, order)),
    writeRecord,
    async writeSent({ bytes, notes: trees, group }) {
      await lock.check()
      const { offset } = await journal.append(bytes)
      notes?.addTrees(trees, offset)
      if (group) {
        const [, last = 0, size = 0] = trees.at(-1) ?? []
        const at = last + size
        notes?.addGroup(group.record, { offset: offset + at, size: bytes.length - at })
      }
      await notes?.writeFull()
    },
    async complete() {
      await lock.check()
      await journal.sync()
    },
    isLost: () => lock.isLost,
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]()
      if (!lock.isLost) {
        await notes?.write()
        // If that fails the former length stands, which the journal reaches as well.
        await noteLength(folder, journal.size).catch(() => {})
      }
      await lock[Symbol.asyncDispose]()
    },
  }
}

/** Notes how long the journal of a run has become that was finished before. */
async function noteLength(folder: string, size: number): Promise<void> {
  if (!isRun(folder)) return
  const manifest = await readManifest(folder)
  if (manifest.status !== 'finished' || manifest.journalBytes === size) return
  await writeManifest(folder, manifest)
}

/** A group read back, with its task. */
export interface StoredGroup {
  readonly group: Group
  readonly task: Task
  readonly order: number
}

/** A run that is read; it may still be growing. */
export interface RunReader extends AsyncDisposable {
  /** Finished groups in the run's own order: step, task, then id. */
  groups(): AsyncGenerator<StoredGroup>
  /** The records of finished groups in the run's own order, without their trees, which are not read. */
  records(): readonly GroupRecord[]
  /** The tasks of finished groups, in the same order. */
  tasks(): readonly Task[]
  /** One finished group, if there is one with this id. */
  group(id: string): Promise<StoredGroup | undefined>
  /** Finished trees whose ids begin so. */
  trees(prefix: string): AsyncGenerator<Tree>
  /** Finished trees whose group is not finished yet. */
  looseTrees(): AsyncGenerator<Tree>
  readonly groupCount: number
  readonly treeCount: number
  readonly finishedGroups: ReadonlySet<GroupId>
  readonly finishedTrees: ReadonlySet<TreeId>
  /** Tokens that its finished trees cost; trajectories of its finished groups, and those that can be trained on. */
  readonly usage: Usage & {
    readonly trajectories: number
    readonly kept: number
    /** Sampled tokens of all trees, those of a tree that was made anew once more. */
    readonly everSampled: number
  }
}

/**
 * Opens a run for reading: an index of its frames is kept, the trees stay on disk. A folder without a run
 * is refused, and so is a finished run whose journal was cut. Whoever goes on with a run names the seats
 * of its attempts: their groups count as finished together or not at all.
 */
export async function openRunReader(
  folder: string,
  seats: readonly string[] = [],
): Promise<RunReader> {
  const paths = runPaths(folder)
  const manifest = await readManifest(folder)
  const { trees, records, end, sampled: everSampled } = await readContents(paths)
  refuseCut(folder, manifest, end)
  leaveOutHalves(records, seats)
  const usage = { sampled: 0, prompt: 0, trajectories: 0, kept: 0, everSampled }
  for (const { sampled, prompt } of trees.values()) {
    usage.sampled += sampled
    usage.prompt += prompt
  }
  for (const { members, unscored } of records.values()) {
    usage.trajectories += members.length + unscored.length
    if (isUseful({ members })) usage.kept++
  }
  const handle = await openToRead(paths.journal)
  const files = { handle: handle!, segments: segmentsOf(folder, manifest) }
  const ordered = [...records.values()].sort(
    (a, b) => (a.step ?? 0) - (b.step ?? 0) || a.order - b.order || (a.id < b.id ? -1 : 1),
  )
  return {
    groupCount: records.size,
    treeCount: trees.size,
    finishedGroups: new Set(records.keys()),
    finishedTrees: new Set(trees.keys()),
    usage,
    groups: () => readAhead(ordered, record => loadGroup(files, trees, record)),
    records: () => ordered,
    tasks: () => ordered.filter(isFirstSeat()).map(({ task }) => task),
    async group(id) {
      const record = records.get(id as GroupId)
      return record && (await loadGroup(files, trees, record))
    },
    async *trees(prefix) {
      for (const [id, place] of trees) {
        if (id.startsWith(prefix)) yield await loadTree(files, place)
      }
    },
    async *looseTrees() {
      for (const [id, place] of trees) {
        if (!records.has(groupOf(id))) yield await loadTree(files, place)
      }
    },
    async [Symbol.asyncDispose]() {
      await handle?.close()
    },
  }
}

/** A writer may die between the groups that the seats of the same attempts form: none of these is finished then. */
function leaveOutHalves(records: Map<GroupId, GroupRecord>, seats: readonly string[]): void {
  for (const { id, seat } of [...records.values()]) {
    if (seat === undefined) continue
    const job = id.slice(0, -seatGroup('' as GroupId, seat).length) as GroupId
    if (!seats.every(each => records.has(seatGroup(job, each)))) records.delete(id)
  }
}

/** Whether a group is the first of those that the seats of the same attempts form. */
function isFirstSeat(): (record: GroupRecord) => boolean {
  const seen = new Set<string>()
  return ({ seat, step = '', order }) => {
    if (seat === undefined) return true
    const job = `${step}/${order}`
    if (seen.has(job)) return false
    seen.add(job)
    return true
  }
}

/** The group that a tree belongs to: its id without the member. */
export function groupOf(tree: string): GroupId {
  return tree.slice(0, tree.lastIndexOf('/')) as GroupId
}

/** What trees are read from. */
interface TreeFiles {
  /** The journal. */
  readonly handle: FileHandle
  readonly segments: Segments
}

async function loadTree({ handle, segments }: TreeFiles, place: FramePlace): Promise<Tree> {
  const bytes = await segments.whole(await readBytes(handle, place))
  const { header, arrays } = decodeFrame(bytes, place.offset)
  return treeFromFrame({ header: (header as { tree: unknown }).tree, arrays })
}

/** Reads one thing after the other, the next one while this one is used. */
async function* readAhead<Item, Read>(
  items: readonly Item[],
  read: (item: Item) => Promise<Read>,
): AsyncGenerator<Read> {
  const begin = (index: number): Promise<Read> | undefined => {
    const reading = index < items.length ? read(items[index]!) : undefined
    // Whoever stops before it is never told of its failure.
    reading?.catch(() => {})
    return reading
  }
  let next = begin(0)
  for (let index = 1; next; index++) {
    const current = await next
    next = begin(index)
    yield current
  }
}

async function loadGroup(
  files: TreeFiles,
  places: ReadonlyMap<TreeId, FramePlace>,
  record: GroupRecord,
): Promise<StoredGroup> {
  const ids = new Set([...record.members, ...record.unscored].map(each => treeOf(each.trajectory)))
  const load = async (id: TreeId): Promise<readonly [TreeId, Tree]> => {
    const place = places.get(id)
    if (!place) throw new Error(`the journal has group ${record.id} but not its tree ${id}`)
    return [id, await loadTree(files, place)]
  }
  const trees = new Map(await Promise.all([...ids].map(load)))
  const find = (id: TrajectoryId) => {
    const tree = trees.get(treeOf(id))!
    return { tree, trajectory: tree.trajectories.find(each => each.id === id)! }
  }
  const members = record.members.map((member): Weighted => {
    const { tree, trajectory } = find(member.trajectory)
    return { tree, trajectory: trajectory as Gradable, ...recordedCredit(member) }
  })
  const unscored = record.unscored.map(
    ({ trajectory, outcome }): Unscored => ({
      ...find(trajectory),
      outcome: outcome as Unscored['outcome'],
    }),
  )
  const { seat, step, task, order } = record
  const group: Group = {
    id: record.id,
    task: task.id as TaskId,
    ...(seat !== undefined && { seat }),
    ...(step !== undefined && { step }),
    members,
    unscored,
  }
  return { group, task, order }
}
