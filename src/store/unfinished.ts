import { rename, rm } from 'node:fs/promises'
import { type TreeId, treeId } from '../core/ids.ts'
import type { Usage } from '../core/trajectory.ts'
import type { Attempt, RolloutContext } from '../rollout/attempt.ts'
import type { Strategy } from '../rollout/strategy.ts'
import {
  type AttemptEntry,
  type AttemptRecord,
  addEntry,
  emptyRecord,
  entriesFromFrame,
  entriesToFrame,
  tokensOf,
} from './attempt-record.ts'
import { type Journal, openJournal } from './journal.ts'
import { readJournal } from './read-journal.ts'
import { openReplay, recording, replaying } from './replay-attempt.ts'

/**
 * Keeps what attempts sampled and observed before they are finished, so that a resumed run goes on
 * from their last finished turn: the attempt is rolled again, recorded samples and the recorded
 * answers of users and outside tools are fed back, and the world repeats the rest. Nothing that was
 * paid for is sampled twice.
 */
export interface Unfinished extends AsyncDisposable {
  roll(strategy: Strategy, context: RolloutContext, attempt: Attempt): ReturnType<Strategy>
  /** The trees of an attempt were written: its record is of no more use. */
  forget(tree: TreeId): void
  /** Tokens of what was on record when it was opened. */
  readonly usage: Usage
  /** Attempts that went on from their record, and those whose world did not repeat itself. */
  readonly counts: { readonly continued: number; readonly restarted: number }
  /** Tokens that each attempt which is under way has sampled so far. */
  lengths(): readonly number[]
  /** Removes the file: the run is finished. */
  remove(): Promise<void>
}

/** Below this size a file is never written anew. */
const smallest = 32 * 1024 * 1024

/** Opens the record of unfinished attempts; what belongs to finished trees is left behind. */
export async function openUnfinished(
  path: string,
  isFinished: (tree: TreeId) => boolean,
): Promise<Unfinished> {
  const before = new Map<TreeId, AttemptRecord>()
  const live = new Map<TreeId, { entries: number; sampled: number }>()
  const usage = { sampled: 0, prompt: 0 }
  const counts = { continued: 0, restarted: 0 }
  for await (const { frame } of readJournal(path)) {
    for (const entry of entriesFromFrame(frame)) {
      if (isFinished(entry.tree)) continue
      const record = before.get(entry.tree) ?? emptyRecord()
      before.set(entry.tree, record)
      addEntry(record, entry)
    }
  }
  for (const { samples } of before.values()) {
    for (const sample of samples.values()) {
      usage.sampled += tokensOf(sample)
      usage.prompt += sample.usage.prompt
    }
  }
  const file = await openCompactFile(path, tree => live.has(tree) || before.has(tree))
  const append = (entry: AttemptEntry): Promise<void> | undefined => {
    const sofar = live.get(entry.tree) ?? { entries: 0, sampled: 0 }
    live.set(entry.tree, sofar)
    if (entry.kind === 'sample') sofar.sampled += tokensOf(entry.sample)
    sofar.entries++
    return file.append(entry)
  }

  return {
    usage,
    counts,
    async roll(strategy, context, attempt) {
      const id = treeId(attempt.group, attempt.member)
      const kept = recording(context, id, append)
      const record = before.get(id)
      if (record && record.samples.size > 0) {
        const replay = openReplay(record)
        const tree = await strategy(replaying(kept, replay), attempt)
        if (!replay.hasDiverged) {
          counts.continued++
          return tree
        }
        counts.restarted++
        before.delete(id)
        await append({ kind: 'restart', tree: id })
      }
      return await strategy(kept, attempt)
    },
    forget(tree) {
      file.waste(live.get(tree)?.entries ?? 0)
      live.delete(tree)
      before.delete(tree)
    },
    lengths: () => [...live.values()].map(({ sampled }) => sampled),
    remove: () => file.remove(),
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  }
}

interface CompactFile extends AsyncDisposable {
  /**
   * Writes an entry with the next turn of the event loop; gives something to wait for where too many
   * wait for the disk. Does nothing once the disk refused: trees are what counts, and they will say so.
   */
  append(entry: AttemptEntry): Promise<void> | undefined
  /** So many entries are of no more use. */
  waste(entries: number): void
  remove(): Promise<void>
}

/** Entries that are written as one frame; larger ones would hold the event loop. */
const mostTogether = 64
/** Entries that may wait for the disk before attempts wait too. */
const mostWaiting = 2048

/** A journal that is written anew without what is of no more use, before most of it is that. */
async function openCompactFile(
  path: string,
  isLive: (tree: TreeId) => boolean,
): Promise<CompactFile> {
  let { journal, count }: Compacted = await compact(path, isLive)
  let compacting: Promise<void> | undefined
  let wasted = 0
  let isOver = false
  /** The entries that still come into the next frame. */
  let together: AttemptEntry[] | undefined
  let waiting = 0
  let writing: Promise<void> | undefined
  let closing: Promise<void> | undefined

  async function write(entries: readonly AttemptEntry[]): Promise<void> {
    try {
      while (compacting) await compacting
      await journal.append(() => {
        if (together === entries) together = undefined
        return entriesToFrame(entries)
      })
    } catch {
      isOver = true
    } finally {
      waiting -= entries.length
    }
  }
  async function shrink(): Promise<void> {
    await journal[Symbol.asyncDispose]()
    ;({ journal, count } = await compact(path, isLive))
    wasted = 0
    compacting = undefined
  }
  async function shut(): Promise<void> {
    isOver = true
    await compacting
    await writing
    await journal[Symbol.asyncDispose]()
  }
  const close = (): Promise<void> => {
    closing ??= shut()
    return closing
  }
  return {
    append(entry) {
      if (isOver) return undefined
      if (!together) {
        together = []
        writing = write(together)
      }
      count++
      waiting++
      // Another frame begins with the next one.
      if (together.push(entry) >= mostTogether) together = undefined
      return waiting > mostWaiting ? writing : undefined
    },
    waste(entries) {
      wasted += entries
      if (isOver || journal.size < smallest || wasted < 0.75 * count) return
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

/** A file that was written anew, with the number of entries that it holds. */
interface Compacted {
  readonly journal: Journal
  readonly count: number
}

async function compact(path: string, isLive: (tree: TreeId) => boolean): Promise<Compacted> {
  const next = `${path}.next`
  await rm(next, { force: true })
  const journal = await openJournal(next, { syncEvery: 60 })
  let count = 0
  for await (const { frame } of readJournal(path)) {
    const entries = entriesFromFrame(frame).filter(({ tree }) => isLive(tree))
    if (entries.length === 0) continue
    count += entries.length
    await journal.append(entriesToFrame(entries))
  }
  await rename(next, path)
  return { journal, count }
}
