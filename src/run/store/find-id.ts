import type { Unscored, Weighted } from '../../base/core/group.ts'
import type { RunReader, StoredGroup } from './store.ts'

/** What an id names in a run: a group, one of its trees, or one of its trajectories. */
export type NamedInRun =
  | { readonly kind: 'group'; readonly stored: StoredGroup }
  | { readonly kind: 'tree'; readonly stored: StoredGroup; readonly tree: string }
  | {
      readonly kind: 'trajectory'
      readonly stored: StoredGroup
      readonly member: Weighted | Unscored
    }

/** Nothing has the id, or it is a part of the ids of several groups. */
export type NotNamed =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'several'; readonly groups: readonly string[] }

/**
 * Finds what a person means: the id of a group, a tree or a trajectory, the id of a task with one
 * group, or the end or the beginning of an id that only one has. `7/0/0` is a trajectory of the only
 * group whose id ends with `/7`.
 */
export async function findById(reader: RunReader, id: string): Promise<NamedInRun | NotNamed> {
  for (const { head, rest } of splitsOf(id)) {
    if (!(reader.finishedGroups as ReadonlySet<string>).has(head)) continue
    const found = await findIn(reader, head, rest)
    if (found) return found
  }
  for (const { head, rest } of splitsOf(id)) {
    const [group, ...others] = alike(reader, head, rest === '')
    if (group === undefined) continue
    if (others.length > 0) return { kind: 'several', groups: [group, ...others] }
    const found = await findIn(reader, group, rest)
    if (found) return found
  }
  return { kind: 'nothing' }
}

/** An id, cut where a group's may end; the longest first. */
function splitsOf(id: string): readonly { readonly head: string; readonly rest: string }[] {
  const parts = id.split('/')
  return parts.map((_, index) => ({
    head: parts.slice(0, parts.length - index).join('/'),
    rest: parts.slice(parts.length - index).join('/'),
  }))
}

async function findIn(
  reader: RunReader,
  group: string,
  rest: string,
): Promise<NamedInRun | undefined> {
  const stored = (await reader.group(group))!
  if (rest === '') return { kind: 'group', stored }
  const id = `${group}/${rest}`
  const members = [...stored.group.members, ...stored.group.unscored]
  const member = members.find(({ trajectory }) => trajectory.id === id)
  if (member) return { kind: 'trajectory', stored, member }
  const ofTree = members.filter(({ tree }) => tree.id === id)
  if (ofTree.length === 1) return { kind: 'trajectory', stored, member: ofTree[0]! }
  return ofTree.length > 1 ? { kind: 'tree', stored, tree: id } : undefined
}

/** Groups whose id ends with whole parts of this one, or, if it may be cut anywhere, begins or ends with it. */
function alike(reader: RunReader, id: string, isCutAnywhere: boolean): readonly string[] {
  const groups = [...reader.finishedGroups] as readonly string[]
  const ending = groups.filter(group => group.endsWith(`/${id}`))
  return ending.length > 0 || !isCutAnywhere
    ? ending
    : groups.filter(group => group.startsWith(id) || group.endsWith(id))
}
