import { type TreeId, treeId } from '../../base/core/ids.ts'
import type { Usage } from '../../base/core/trajectory.ts'
import type { Attempt, RolloutContext } from '../../engine/rollout/attempt.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import {
  type AttemptEntry,
  type AttemptRecord,
  addEntry,
  emptyRecord,
  tokensOf,
} from './attempt-record.ts'
import { openCompactFile, type RecordedAttempt } from './compact-file.ts'
import { makeReplay, recording, replaying } from './replay-attempt.ts'

/**
 * Keeps what attempts sampled and observed before they are finished, so that a resumed run goes on
 * from their last finished turn: the attempt is rolled again, recorded samples and the recorded
 * answers of users and outside tools are fed back, and the world repeats the rest. Nothing that was
 * paid for is sampled twice.
 */
export interface Unfinished extends AsyncDisposable {
  roll(strategy: Strategy, context: RolloutContext, attempt: Attempt): ReturnType<Strategy>
  /** Called when the trees of an attempt are written, so that its record is obsolete. */
  forget(tree: TreeId): void
  /** Tokens of what was on record when it was opened. */
  readonly usage: Usage
  /** Attempts continued from their record, and those restarted because their world diverged. */
  readonly counts: { readonly continued: number; readonly restarted: number }
  /** Tokens that each attempt which is under way has sampled so far. */
  lengths(): readonly number[]
  /** Removes the file: the run is finished. */
  remove(): Promise<void>
}

type Append = (entry: AttemptEntry) => Promise<void> | undefined
type Rolled = Awaited<ReturnType<Strategy>>

/** An attempt that is about to be rolled. */
export interface Rolling {
  readonly strategy: Strategy
  readonly kept: RolloutContext
  readonly attempt: Attempt
}

/** An attempt that is under way: its entries, the tokens that it sampled, and whether its trees are written. */
interface LiveAttempt extends RecordedAttempt {
  entries: number
  sampled: number
  isOver: boolean
}

/** Opens the record of unfinished attempts; entries of finished trees are dropped. */
export async function openUnfinished(
  path: string,
  isFinished: (tree: TreeId) => boolean,
): Promise<Unfinished> {
  const before = new Map<TreeId, AttemptRecord>()
  const live = new Map<TreeId, LiveAttempt>()
  const counts = { continued: 0, restarted: 0 }
  const file = await openCompactFile(path, {
    isLive: tree => live.has(tree) || before.has(tree),
    onEntry(entry) {
      if (isFinished(entry.tree)) return
      const record = before.get(entry.tree) ?? emptyRecord()
      before.set(entry.tree, record)
      addEntry(record, entry)
    },
  })

  /** Begins the record of an attempt; gives what appends to it. */
  const begin = (tree: TreeId): Append => {
    const attempt: LiveAttempt = { entries: 0, sampled: 0, isOver: false }
    return entry => {
      if (attempt.entries === 0) live.set(tree, attempt)
      if (entry.kind === 'sample') attempt.sampled += tokensOf(entry.sample)
      attempt.entries++
      return file.append(entry, attempt)
    }
  }

  return {
    usage: usageOf(before.values()),
    counts,
    roll(strategy, context, attempt) {
      const id = treeId(attempt.group, attempt.member)
      const append = begin(id)
      const kept = recording(context, id, append)
      const record = before.get(id)
      // Nearly all attempts begin anew; one more function that awaits each of them would only hold memory.
      if (!record || record.samples.size === 0) return strategy(kept, attempt)
      return goOn(record, { strategy, kept, attempt }, isContinued => {
        counts[isContinued ? 'continued' : 'restarted']++
        if (isContinued) return undefined
        before.delete(id)
        return append({ kind: 'restart', tree: id })
      })
    },
    forget(tree) {
      const attempt = live.get(tree)
      if (attempt) attempt.isOver = true
      file.waste(attempt?.entries ?? 0)
      live.delete(tree)
      before.delete(tree)
    },
    lengths: () => [...live.values()].map(({ sampled }) => sampled),
    remove: () => file.remove(),
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  }
}

/** What was spent on samples that are on record. */
function usageOf(records: Iterable<AttemptRecord>): { sampled: number; prompt: number } {
  const usage = { sampled: 0, prompt: 0 }
  for (const { samples } of records) {
    for (const sample of samples.values()) {
      usage.sampled += tokensOf(sample)
      usage.prompt += sample.usage.prompt
    }
  }
  return usage
}

/** Rolls an attempt from its record, and anew if its world diverges from it; `tell` hears which first. */
export async function goOn(
  record: AttemptRecord,
  { strategy, kept, attempt }: Rolling,
  tell: (isContinued: boolean) => Promise<void> | undefined,
): Promise<Rolled> {
  const replay = makeReplay(record)
  const tree = await strategy(replaying(kept, replay), attempt)
  await tell(!replay.hasDiverged)
  return replay.hasDiverged ? await strategy(kept, attempt) : tree
}
