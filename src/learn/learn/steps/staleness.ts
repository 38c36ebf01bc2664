import type { Group } from '../../../base/core/group.ts'
import { oldestVersion } from '../../../engine/filters/groups.ts'

/** The weights' version at the start of every step, to give ages in steps. */
export interface VersionHistory {
  /** A step ended with this version. */
  push(version: number): void
  /** The version of now. */
  newest(): number
  /** Steps that have passed since a version was the newest. */
  ageOf(version: number): number
}

/** Opens a history that begins with the version training starts from. */
export function makeHistory(start: number): VersionHistory {
  const versions = [start]
  return {
    push: version => void versions.push(version),
    newest: () => versions.at(-1)!,
    ageOf(version) {
      let at = versions.length - 1
      while (at > 0 && versions[at]! > version) at--
      return versions.length - 1 - at
    },
  }
}

/** The age of a step's training data, in steps. */
export interface Staleness {
  readonly mean: number
  readonly most: number
}

/** The age of a group: that of the oldest token that would be trained. */
export function ageOfGroup(group: Group, history: VersionHistory): number {
  const trained = group.members.filter(({ dropped }) => dropped === null)
  const ages = trained.map(member => ageOfMember(oldestVersion(member), history))
  return ages.reduce((most, age) => Math.max(most, age), 0)
}

function ageOfMember(oldest: number, history: VersionHistory): number {
  return Number.isFinite(oldest) ? history.ageOf(oldest) : 0
}

/** The ages of the trajectories that a step learns from. */
export function stalenessOf(groups: readonly Group[], history: VersionHistory): Staleness {
  const ages = groups.flatMap(({ members }) =>
    members
      .filter(({ dropped }) => dropped === null)
      .map(member => ageOfMember(oldestVersion(member), history)),
  )
  if (ages.length === 0) return { mean: 0, most: 0 }
  return {
    mean: ages.reduce((sum, age) => sum + age, 0) / ages.length,
    most: ages.reduce((most, age) => Math.max(most, age), 0),
  }
}
