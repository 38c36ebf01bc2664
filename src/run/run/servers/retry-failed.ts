import { type GroupId, seatGroup, type TreeId, treeOf } from '../../../base/core/ids.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { groupOf, type RunReader } from '../../store/store.ts'

/** What of a run is rolled again: attempts that failed, in groups that are opened for them. */
interface Failed {
  readonly attempts: Set<string>
  /** Complete groups that have such an attempt: rewards, filters and advantages have seen them. */
  readonly groups: ReadonlySet<GroupId>
}

/** What is finished of a run whose failed attempts are rolled again: whole groups, and trees of the others. */
export async function withoutFailed(
  reader: RunReader,
  { seats, tell, run }: { seats: readonly string[]; tell: (line: string) => void; run: string },
): Promise<{ readonly finished: ReadonlySet<GroupId>; readonly known: ReadonlyMap<TreeId, Tree> }> {
  const failed = failedIn(reader, seats)
  const trees: Tree[] = []
  for await (const tree of reader.looseTrees()) trees.push(tree)
  for (const group of failed.groups) {
    for await (const tree of reader.trees(`${group}/`)) trees.push(tree)
  }
  for (const { id, trajectories } of trees) {
    const hasFailed = trajectories.some(({ outcome }) => outcome.kind === 'failed')
    if (hasFailed) failed.attempts.add(attemptOf(id, seats))
  }
  tell(retryLine(failed, run))
  const kept = trees.filter(({ id }) => !failed.attempts.has(attemptOf(id, seats)))
  const finished = [...reader.finishedGroups].filter(id => !failed.groups.has(id))
  return { finished: new Set(finished), known: new Map(kept.map(tree => [tree.id, tree])) }
}

/** The complete groups with attempts that failed; if an attempt has several seats, all of its groups. */
function failedIn(reader: RunReader, seats: readonly string[]): Failed {
  const attempts = new Set<string>()
  const jobs = new Set<string>()
  const records = reader.records()
  for (const { id, unscored } of records) {
    for (const { trajectory, outcome } of unscored) {
      if (outcome.kind !== 'failed') continue
      jobs.add(jobOf(id, seats))
      attempts.add(attemptOf(treeOf(trajectory), seats))
    }
  }
  const groups = records.map(({ id }) => id).filter(id => jobs.has(jobOf(id, seats)))
  return { attempts, groups: new Set(groups) }
}

/** A group's id without its seat. */
function jobOf(group: string, seats: readonly string[]): string {
  const endings = seats.map(seat => seatGroup('' as GroupId, seat)).filter(each => each !== '')
  const ending = endings.find(each => group.endsWith(each)) ?? ''
  return group.slice(0, group.length - ending.length)
}

function attemptOf(tree: TreeId, seats: readonly string[]): string {
  return `${jobOf(groupOf(tree), seats)}${tree.slice(tree.lastIndexOf('/'))}`
}

/** What will change, in words; throws if nothing failed. */
function retryLine({ attempts, groups }: Failed, run: string): string {
  const { size } = attempts
  if (size === 0) throw new SettingError(`--retry failed: no attempt of ${run} failed`)
  const again = `${size} failed ${size === 1 ? 'attempt is' : 'attempts are'} rolled again`
  if (groups.size === 0) return again
  const seen = groups.size === 1 ? 'a complete group' : `${groups.size} complete groups`
  return (
    `${again}. Rewards and filters have seen ${seen} of them: what is rolled again changes ` +
    'advantages and what is kept, so the sample is another than it was'
  )
}
