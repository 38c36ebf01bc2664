import { type Json, treeOf } from '../../../base/core/ids.ts'
import type { Outcome } from '../../../base/core/outcome.ts'
import type { Trajectory } from '../../../base/core/trajectory.ts'
import type { Tree } from '../../../base/core/tree.ts'
import type { GroupRecord, MemberRecord } from '../../../run/store/group-record.ts'
import type { MemberRow } from '../answers.ts'
import { answerOf } from './facts.ts'
import type { RunIndex } from './run-index.ts'

/** A member of a group with its tree. */
export interface LoadedMember {
  readonly tree: Tree
  readonly trajectory: Trajectory
  /** Undefined if it never got a reward. */
  readonly scored: MemberRecord | undefined
  readonly outcome: Outcome
}

/** A group with its members read from disk. */
export interface LoadedGroup {
  readonly record: GroupRecord
  readonly members: readonly LoadedMember[]
}

/** Reads the trees of a group. */
export async function loadGroup(index: RunIndex, record: GroupRecord): Promise<LoadedGroup> {
  const trees = new Map<string, Tree | undefined>()
  const members: LoadedMember[] = []
  const add = async (
    trajectory: string,
    scored?: MemberRecord,
    outcome?: Outcome,
  ): Promise<void> => {
    const treeId = treeOf(trajectory)
    if (!trees.has(treeId)) trees.set(treeId, await index.tree(treeId))
    const tree = trees.get(treeId)
    const found = tree?.trajectories.find(each => each.id === trajectory)
    if (!tree || !found) {
      throw new Error(`the journal has group ${record.id} but not its tree ${treeId}`)
    }
    members.push({ tree, trajectory: found, scored, outcome: outcome ?? found.outcome })
  }
  for (const member of record.members) await add(member.trajectory, member)
  for (const { trajectory, outcome } of record.unscored) await add(trajectory, undefined, outcome)
  return { record, members }
}

/** A member in a line. */
export function memberRow({ tree, trajectory, scored, outcome }: LoadedMember): MemberRow {
  const { id, turns, usage, volatile, calls, fidelity, views } = trajectory
  const { policy, tools, environment, reward } = volatile.seconds
  return {
    id,
    tree: tree.id,
    reward: scored?.reward ?? null,
    advantage: scored?.advantage ?? null,
    weight: scored?.weight ?? 0,
    dropped: scored?.dropped ?? null,
    outcome,
    turns: turns.length,
    sampled: usage.sampled,
    seconds: policy + tools + environment + reward,
    calls: calls.map(({ tool }) => tool || '(none)'),
    fidelity: fidelity.kind,
    answer: answerOf(trajectory),
    isCondensed: views?.some(view => !view.examples) ?? false,
    endings: tree.trajectories.length,
  }
}

/** What a task is made of, as JSON. */
export function dataOf({ task }: GroupRecord): Json {
  return (task.data ?? null) as Json
}
