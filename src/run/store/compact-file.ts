import { rename, rm } from 'node:fs/promises'
import type { TreeId } from '../../base/core/ids.ts'
import { type AttemptEntry, entriesFromFrame, entriesToFrame } from './attempt-record.ts'
import { checkFrame, viewFrame } from './frame.ts'
import { makeGathering } from './gathering.ts'
import { type Journal, openJournal } from './journal.ts'
import { type FramePlace, openToRead, readBytes, readJournal } from './read-journal.ts'

/** A file of entries that is rewritten without obsolete entries before they are most of it. */
export interface CompactFile extends AsyncDisposable {
  /**
   * Writes an entry within a moment, unless its attempt is over by then; gives something to wait for
   * where too many wait for the disk. Does nothing once the disk refused: trees are what counts, and
   * they will say so.
   */
  append(entry: AttemptEntry, attempt: RecordedAttempt): Promise<void> | undefined
  /** Reports that this many entries are obsolete. */
  waste(entries: number): void
  remove(): Promise<void>
}

/** An attempt of which entries are written; asking itself is cheaper than looking it up for every entry. */
export interface RecordedAttempt {
  readonly isOver: boolean
}

/** An entry on its way to the file. */
interface Waiting {
  readonly entry: AttemptEntry
  readonly attempt: RecordedAttempt
}

/** How such a file is opened. */
export interface CompactFileOptions {
  readonly isLive: (tree: TreeId) => boolean
  /** Called with every entry of the file, before it is asked which are live. */
  readonly onEntry: (entry: AttemptEntry) => void
  /** Below this size a file is never written anew. @default 32 MiB */
  readonly smallest?: number
  /** Milliseconds between two writes. @default 5 */
  readonly apart?: number
}

/**
 * No longer than a busy event loop takes for one turn. Every write has its price, whatever it holds,
 * and a thousand turns of attempts a second make as many without this.
 */
const momentMilliseconds = 5
/** Entries that are written as one frame; larger ones would hold the event loop. */
const mostTogether = 64
/** Entries that may wait for the disk before attempts wait too. */
const mostWaiting = 2048

/** Opens the file and drops obsolete entries at once. */
export async function openCompactFile(
  path: string,
  { isLive, onEntry, smallest = 32 * 1024 * 1024, apart = momentMilliseconds }: CompactFileOptions,
): Promise<CompactFile> {
  const frames = await openFrames(path, { isLive, onEntry })
  const { tally } = frames
  let compacting: Promise<void> | undefined
  let isOver = false
  let waiting = 0

  const gathering = makeGathering<Waiting>(apart, async gathered => {
    const entries = liveIn(gathered)
    // Nobody needs what was over before it was written.
    tally.count -= gathered.length - entries.length
    tally.wasted -= gathered.length - entries.length
    try {
      while (compacting) await compacting
      await Promise.all(piecesOf(entries, mostTogether).map(frames.write))
    } catch {
      isOver = true
    } finally {
      waiting -= gathered.length
    }
  })
  async function shrink(): Promise<void> {
    await frames.rewrite()
    tally.count += waiting
    compacting = undefined
  }
  async function close(): Promise<void> {
    isOver = true
    await compacting
    await gathering.flush()
    await frames.close()
  }
  return {
    append(entry, attempt) {
      if (isOver) return undefined
      tally.count++
      waiting++
      gathering.add({ entry, attempt })
      return waiting > mostWaiting ? gathering.flush() : undefined
    },
    waste(entries) {
      tally.wasted += entries
      if (isOver || frames.size() < smallest || tally.wasted < 0.75 * tally.count) return
      compacting ??= shrink().catch(() => {
        isOver = true
        compacting = undefined
      })
    },
    async remove() {
      await close()
      await rm(path, { force: true })
    },
    [Symbol.asyncDispose]: close,
  }
}

/** The frames of a file, as they lie on disk. */
interface Frames {
  /** Bytes of the file. */
  size(): number
  /** All entries, and those of attempts that are not live; counted anew when the file is written anew. */
  readonly tally: { count: number; wasted: number }
  write(entries: readonly AttemptEntry[]): Promise<void>
  /** Writes the file anew with what is live. */
  rewrite(): Promise<void>
  /** May be asked for twice. */
  close(): Promise<void>
}

async function openFrames(
  path: string,
  { isLive, onEntry }: Pick<CompactFileOptions, 'isLive' | 'onEntry'>,
): Promise<Frames> {
  let { journal, frames }: Compacted = await compact(path, await readFrames(path, onEntry), isLive)
  const tally = { ...countIn(frames, isLive) }
  let closing: PromiseLike<void> | undefined
  return {
    tally,
    size: () => journal.size,
    async write(entries) {
      const place = await journal.append(() => entriesToFrame(entries))
      frames.push({ place, trees: treesIn(entries) })
    },
    async rewrite() {
      await journal[Symbol.asyncDispose]()
      ;({ journal, frames } = await compact(path, frames, isLive))
      Object.assign(tally, countIn(frames, isLive))
    },
    async close() {
      closing ??= journal[Symbol.asyncDispose]()
      await closing
    },
  }
}

/** A frame of the file, and the attempt of each of its entries. */
interface NotedFrame {
  readonly place: FramePlace
  readonly trees: readonly TreeId[]
}

/** The entries whose attempt is not over. */
function liveIn(gathered: readonly Waiting[]): readonly AttemptEntry[] {
  const entries: AttemptEntry[] = []
  for (const { entry, attempt } of gathered) if (!attempt.isOver) entries.push(entry)
  return entries
}

/** A list in pieces of at most so many. */
function piecesOf<Item>(items: readonly Item[], most: number): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / most) }, (_, piece) =>
    items.slice(piece * most, (piece + 1) * most),
  )
}

function treesIn(entries: readonly AttemptEntry[]): readonly TreeId[] {
  return entries.map(({ tree }) => tree)
}

async function readFrames(
  path: string,
  onEntry: (entry: AttemptEntry) => void,
): Promise<readonly NotedFrame[]> {
  const frames: NotedFrame[] = []
  for await (const { frame, place } of readJournal(path)) {
    const entries = entriesFromFrame(frame)
    for (const entry of entries) onEntry(entry)
    frames.push({ place, trees: treesIn(entries) })
  }
  return frames
}

function countIn(
  frames: readonly NotedFrame[],
  isLive: (tree: TreeId) => boolean,
): { readonly count: number; readonly wasted: number } {
  const trees = frames.flatMap(frame => frame.trees)
  return { count: trees.length, wasted: trees.filter(tree => !isLive(tree)).length }
}

/** A rewritten file, and its contents. */
interface Compacted {
  readonly journal: Journal
  readonly frames: NotedFrame[]
}

/** Frames that are copied before the event loop turns and others are read. */
const copiedTogether = 4

/** Writes the file anew with what is live. If that is most of a frame, its bytes are copied. */
async function compact(
  path: string,
  frames: readonly NotedFrame[],
  isLive: (tree: TreeId) => boolean,
): Promise<Compacted> {
  const next = `${path}.next`
  await rm(next, { force: true })
  const journal = await openJournal(next, { syncEvery: 60 })
  const live = frames.filter(({ trees }) => trees.some(isLive))
  const kept: NotedFrame[] = []
  const handle = live.length > 0 ? await openToRead(path) : undefined
  try {
    for (let at = 0; at < live.length; at += copiedTogether) {
      const copying = live.slice(at, at + copiedTogether)
      // All are read before the first is appended, since later entries replace earlier ones.
      const bytes = await Promise.all(copying.map(({ place }) => readBytes(handle!, place)))
      const copied = copying.map((frame, index) =>
        copyLive(frame, bytes[index]!, { journal, isLive }),
      )
      kept.push(...(await Promise.all(copied)))
    }
  } finally {
    await handle?.close()
  }
  await rename(next, path)
  return { journal, frames: kept }
}

interface Copying {
  readonly journal: Journal
  readonly isLive: (tree: TreeId) => boolean
}

async function copyLive(
  { place, trees }: NotedFrame,
  bytes: Buffer,
  { journal, isLive }: Copying,
): Promise<NotedFrame> {
  if (trees.filter(isLive).length > trees.length / 2) {
    return { place: await journal.append(bytes), trees }
  }
  checkFrame(bytes, place.offset)
  const all = entriesFromFrame(viewFrame(bytes))
  const entries = all.filter(({ tree }) => isLive(tree))
  return { place: await journal.append(() => entriesToFrame(entries)), trees: treesIn(entries) }
}
