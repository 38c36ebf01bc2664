declare const noun: unique symbol

type Id<Noun extends string> = string & { readonly [noun]: Noun }

/** Names one problem. */
export type TaskId = Id<'task'>
/** Names the attempts at one task that are compared with each other. */
export type GroupId = Id<'group'>
/** Names one token tree: one attempt, or one search. */
export type TreeId = Id<'tree'>
/** Names one ended attempt in a tree. */
export type TrajectoryId = Id<'trajectory'>

/** A list that has at least one entry. */
export type NonEmpty<T> = readonly [T, ...T[]]

/** Plain JSON: what can be stored and read back years later. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json }

/** The id of the group that compares what one seat of an attempt did; '' is the only seat. */
export function seatGroup(group: GroupId, seat: string): GroupId {
  return (seat === '' ? group : `${group}@${seat}`) as GroupId
}

/** The id of the tree that member `member` of a group grows. */
export function treeId(group: GroupId, member: number): TreeId {
  return `${group}/${member}` as TreeId
}

/** The id of the trajectory that ended as the `index`-th of its tree. */
export function trajectoryId(tree: TreeId, index: number): TrajectoryId {
  return `${tree}/${index}` as TrajectoryId
}

/** The tree that a trajectory belongs to: its id without its number. */
export function treeOf(trajectory: string): TreeId {
  return trajectory.slice(0, trajectory.lastIndexOf('/')) as TreeId
}
