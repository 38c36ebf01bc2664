import type { Unscored, Weighted } from '../../core/group.ts'
import { commandLine } from '../../names/program-name.ts'
import type { RunReader, StoredGroup } from '../../store/store.ts'
import { MisuseError } from '../command.ts'

/** What an id names: a group, one of its trees, or one of its trajectories. */
export type Shown =
  | { readonly kind: 'group'; readonly stored: StoredGroup }
  | { readonly kind: 'tree'; readonly stored: StoredGroup; readonly tree: string }
  | { readonly kind: 'trajectory'; readonly member: Weighted | Unscored }

/**
 * Finds what a person means: the id of a group, a tree or a trajectory, the id of a task with one
 * group, or the end or the beginning of an id that only one has.
 */
export async function findShown(reader: RunReader, run: string, id: string): Promise<Shown> {
  for (const group of groupsFor(reader, id)) {
    const stored = (await reader.group(group))!
    const rest =
      id === group ? '' : id.startsWith(`${group}/`) ? id.slice(group.length + 1) : undefined
    if (rest === '') return { kind: 'group', stored }
    const found = rest === undefined ? undefined : within(stored, id)
    if (found) return found
  }
  const similar = alike(reader, id)
  if (similar.length === 1) {
    return { kind: 'group', stored: (await reader.group(similar[0]!))! }
  }
  throw new MisuseError(
    similar.length === 0
      ? `no group, tree, trajectory or task "${id}" in ${run}; \`${commandLine('show', run)}\` lists groups`
      : `"${id}" may be ${similar.length} groups: ${similar.slice(0, 5).join(', ')}${similar.length > 5 ? ', …' : ''}`,
  )
}

/** The groups whose id is this one, or begins it, the longest first. */
function groupsFor(reader: RunReader, id: string): readonly string[] {
  const parts = id.split('/')
  const begins = parts.map((_, index) => parts.slice(0, parts.length - index).join('/'))
  return begins.filter(each => (reader.finishedGroups as ReadonlySet<string>).has(each))
}

function within(stored: StoredGroup, id: string): Shown | undefined {
  const members = [...stored.group.members, ...stored.group.unscored]
  const member = members.find(({ trajectory }) => trajectory.id === id)
  if (member) return { kind: 'trajectory', member }
  const ofTree = members.filter(({ tree }) => tree.id === id)
  if (ofTree.length === 1) return { kind: 'trajectory', member: ofTree[0]! }
  return ofTree.length > 1 ? { kind: 'tree', stored, tree: id } : undefined
}

/** Groups of a task of this name, or whose id ends or begins with it. */
function alike(reader: RunReader, id: string): readonly string[] {
  const groups = [...reader.finishedGroups] as readonly string[]
  const ending = groups.filter(group => group.endsWith(`/${id}`))
  return ending.length > 0
    ? ending
    : groups.filter(group => group.startsWith(id) || group.endsWith(id))
}
