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
  entryFromFrame,
  entryToFrame,
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
  const live = new Map<TreeId, { bytes: number; sampled: number }>()
  const usage = { sampled: 0, prompt: 0 }
  const counts = { continued: 0, restarted: 0 }
  for await (const { frame } of readJournal(path)) {
    const entry = entryFromFrame(frame)
    if (isFinished(entry.tree)) continue
    const record = before.get(entry.tree) ?? emptyRecord()
    before.set(entry.tree, record)
    addEntry(record, entry)
  }
  for (const { samples } of before.values()) {
    for (const sample of samples.values()) {
      usage.sampled += tokensOf(sample)
      usage.prompt += sample.usage.prompt
    }
  }
  const file = await openCompactFile(path, tree => live.has(tree) || before.has(tree))
  const append = async (entry: AttemptEntry): Promise<void> => {
    const sofar = live.get(entry.tree) ?? { bytes: 0, sampled: 0 }
    live.set(entry.tree, sofar)
    if (entry.kind === 'sample') sofar.sampled += tokensOf(entry.sample)
    sofar.bytes += await file.append(entry)
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
      file.waste(live.get(tree)?.bytes ?? 0)
      live.delete(tree)
      before.delete(tree)
    },
    lengths: () => [...live.values()].map(({ sampled }) => sampled),
    remove: () => file.remove(),
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  }
}

interface CompactFile extends AsyncDisposable {
  /** Gives the bytes it took; nothing once the disk refused: trees are what counts, and they will say so. */
  append(entry: AttemptEntry): Promise<number>
  /** So many bytes are of no more use. */
  waste(bytes: number): void
  remove(): Promise<void>
}

/** A journal that is written anew without what is of no more use, before most of it is that. */
async function openCompactFile(
  path: string,
  isLive: (tree: TreeId) => boolean,
): Promise<CompactFile> {
  let journal: Journal | undefined = await compact(path, isLive)
  let compacting: Promise<void> | undefined
  let wasted = 0
  let isBroken = false

  const close = async (): Promise<void> => {
    await compacting
    await journal?.[Symbol.asyncDispose]()
    journal = undefined
  }
  async function shrink(): Promise<void> {
    await journal?.[Symbol.asyncDispose]()
    journal = await compact(path, isLive)
    wasted = 0
    compacting = undefined
  }
  return {
    async append(entry) {
      while (compacting) await compacting
      if (isBroken || !journal) return 0
      try {
        return (await journal.append(entryToFrame(entry))).size
      } catch {
        isBroken = true
        return 0
      }
    },
    waste(bytes) {
      wasted += bytes
      if (!journal || isBroken || wasted < Math.max(smallest, journal.size * 0.75)) return
      compacting ??= shrink().catch(() => {
        isBroken = true
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

async function compact(path: string, isLive: (tree: TreeId) => boolean): Promise<Journal> {
  const next = `${path}.next`
  await rm(next, { force: true })
  const journal = await openJournal(next, { syncEvery: 60 })
  for await (const { frame } of readJournal(path)) {
    if (isLive((frame.header as AttemptEntry).tree)) await journal.append(frame)
  }
  await rename(next, path)
  return journal
}
