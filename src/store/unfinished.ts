import { type TreeId, treeId } from '../core/ids.ts'
import type { Usage } from '../core/trajectory.ts'
import type { Attempt, RolloutContext } from '../rollout/attempt.ts'
import type { Strategy } from '../rollout/strategy.ts'
import {
  type AttemptEntry,
  type AttemptRecord,
  addEntry,
  emptyRecord,
  tokensOf,
} from './attempt-record.ts'
import { openCompactFile } from './compact-file.ts'
import { openReplay, recording, replaying } from './replay-attempt.ts'

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

/** Opens the record of unfinished attempts; entries of finished trees are dropped. */
export async function openUnfinished(
  path: string,
  isFinished: (tree: TreeId) => boolean,
): Promise<Unfinished> {
  const before = new Map<TreeId, AttemptRecord>()
  const live = new Map<TreeId, { entries: number; sampled: number }>()
  const usage = { sampled: 0, prompt: 0 }
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
  for (const { samples } of before.values()) {
    for (const sample of samples.values()) {
      usage.sampled += tokensOf(sample)
      usage.prompt += sample.usage.prompt
    }
  }
  const append = (entry: AttemptEntry): Promise<void> | undefined => {
    const known = live.get(entry.tree)
    const sofar = known ?? { entries: 0, sampled: 0 }
    if (!known) live.set(entry.tree, sofar)
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
