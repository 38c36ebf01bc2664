import type { Task } from '../../../base/core/environment.ts'
import { type Group, isHeldOut, isUseful } from '../../../base/core/group.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { isSampled, sampled } from '../../../base/core/segment.ts'
import { restoreTree, type Tree } from '../../../base/core/tree.ts'
import { gather } from '../../../engine/weigh/gather.ts'
import { filtersOf } from '../../../engine/weigh/seats.ts'
import { mapTrees } from '../../../run/exchange/convert.ts'
import { makeSameTokens, otherTokens } from '../../../run/exchange/same-tokens.ts'
import { gatherOptions, type RollParts } from '../../../run/run/roll-groups.ts'
import { readManifest } from '../../../run/store/run-folder.ts'
import { openRunReader, type StoredGroup } from '../../../run/store/store.ts'
import type { Fed, OpenFeed } from './feed.ts'

/** What a stored run has to learn from. */
export interface Stored {
  readonly run: string
  /** Groups that teach something, and what is in them. */
  readonly groups: number
  readonly trajectories: number
  readonly tokens: number
}

/** A stored run that steps learn from. */
export interface OpenedStored {
  readonly counts: Stored
  readonly tasks: readonly Task[]
  readonly feed: OpenFeed
}

/** What a stored run is learned from with: its groups are filtered and compared as the settings of now say. */
type StoredParts = Pick<RollParts, 'renderer' | 'filters' | 'estimate' | 'weighting' | 'signal'>

/** Whether a task is held out, and not learned from. */
type IsLeft = (task: Task) => boolean

/**
 * Reads through a stored run before anything is learned from it. Refuses one without rewards, one of another
 * tokenizer, and one with attempts that have no log-probabilities. Some tasks may be left, which measure what comes of it.
 */
export async function readStored(
  run: string,
  parts: StoredParts,
  isLeft: IsLeft,
): Promise<OpenedStored> {
  await readManifest(run)
  const counts = { groups: 0, trajectories: 0, tokens: 0 }
  const all = { scored: 0, unscored: 0, bare: 0 }
  const tasks = new Map<string, Task>()
  const tokens = makeSameTokens(parts.renderer)
  for await (const { group, task } of groupsOf(run, parts, isLeft)) {
    all.scored += group.members.length
    all.unscored += group.unscored.length
    all.bare += group.members.filter(({ tree }) => isBare(tree)).length
    for (const { tree, trajectory } of group.members) tokens.look(tree, trajectory)
    if (!isUseful(group)) continue
    tasks.set(task.id, task)
    counts.groups++
    counts.trajectories += group.members.length
    counts.tokens += group.members.reduce((sum, each) => sum + each.trajectory.usage.sampled, 0)
  }
  refuseUseless(run, { ...all, ...counts })
  if (!tokens.isSame()) throw otherTokens(run, parts.renderer, `--from ${run}`)
  return { counts: { run, ...counts }, tasks: [...tasks.values()], feed: feedOf(run, isLeft) }
}

function refuseUseless(
  run: string,
  found: {
    readonly scored: number
    readonly unscored: number
    readonly bare: number
    readonly groups: number
  },
): void {
  const { scored, unscored, bare, groups } = found
  const refuse = (reason: string): never => {
    throw new SettingError(`--from ${run}: ${reason}`)
  }
  if (scored + unscored === 0) refuse('it holds no attempts that could be learned from')
  if (scored === 0)
    refuse(`none of its ${unscored} trajectories has a reward; \`espalier score\` gives them one`)
  if (bare > 0) {
    refuse(
      `${bare} of its ${scored} trajectories have no log-probabilities, without which nobody knows how likely they were; ` +
        'roll with a policy that gives them, or convert with --policy URI',
    )
  }
  if (groups === 0) refuse('the filters leave none of its groups')
}

/** Whether nobody knows how likely the tokens of a tree were. */
function isBare({ nodes }: Tree): boolean {
  const segments = nodes.map(({ segment }) => segment).filter(isSampled)
  return segments.length > 0 && segments.every(({ logprobs }) => logprobs === null)
}

/** The groups of a run in their order, judged and weighed anew, without those that measured it and what is held out. */
async function* groupsOf(
  run: string,
  parts: StoredParts,
  isLeft: IsLeft,
): AsyncGenerator<Pick<StoredGroup, 'group' | 'task'>> {
  await using reader = await openRunReader(run)
  for await (const { group, task } of reader.groups()) {
    parts.signal?.throwIfAborted()
    if (isHeldOut(group) || isLeft(task)) continue
    const { id, seat, members, unscored } = group
    const scored = members.map(({ tree, trajectory, reward }) => ({ tree, trajectory, reward }))
    const options = gatherOptions(parts)
    yield {
      task,
      group: gather({ id, task, ...(seat !== undefined && { seat }) }, [...scored, ...unscored], {
        ...options,
        filters: filtersOf(group, options.filters),
      }),
    }
  }
}

/** Feeds the groups of a run in their order; one that goes on passes over those of the steps that were taken. */
function feedOf(run: string, isLeft: IsLeft): OpenFeed {
  return async (parts, { tasksPerStep, first, history }) => {
    const groups = groupsOf(run, parts, isLeft)
    // Every token is of weights from before the first step, whatever another run called their version.
    const version = Math.max(0, history.newest() - (first - 1))
    const next = async (): Promise<Fed> => {
      const taken: Group[] = []
      const refused: Group[] = []
      while (taken.length < tasksPerStep) {
        const { value, done } = await groups.next()
        if (done) break
        if (isUseful(value.group)) taken.push(value.group)
        else refused.push(value.group)
      }
      return { groups: taken, refused, stale: [], isOffPolicy: true }
    }
    for (let step = 1; step < first; step++) await next()
    let step = first
    return {
      change: work => work(),
      async take() {
        const fed = await next()
        const now = step++
        const here = (group: Group): Group => ({
          ...mapTrees(group, tree => ofVersion(tree, version)),
          step: now,
        })
        const all = { ...fed, groups: fed.groups.map(here), refused: fed.refused.map(here) }
        for (const group of [...all.groups, ...all.refused]) {
          parts.listen?.({ kind: 'group-end', group })
        }
        return all
      },
      async [Symbol.asyncDispose]() {
        await groups.return(undefined)
      },
    }
  }
}

function ofVersion(tree: Tree, version: number): Tree {
  const nodes = tree.nodes.slice(1).map(node => {
    const { segment } = node
    if (!isSampled(segment)) return node
    return { ...node, segment: sampled({ ...segment, version: { from: version, to: version } }) }
  })
  return restoreTree(tree, nodes, tree.trajectories)
}
