import type { VersionRange } from '../../base/core/segment.ts'

/** Numbers for the versions that servers name, shared by all servers of one policy. */
export interface Versions {
  /** The number last seen; `undefined` before the first answer. */
  readonly latest: number | undefined
  /** The number of a server's own name for its weights; unnamed weights stay at the latest. */
  read(name: unknown): number
}

/** Names remembered at one time; an older one that comes back counts as new. */
const remembered = 10_000

/** Opens a count: names that read as integers stand for themselves, others raise the counter. */
export function makeVersions(): Versions {
  const numbers = new Map<string, number>()
  let highest = -1
  let latest: number | undefined

  function numberOf(name: string): number {
    if (/^\d{1,15}$/.test(name)) return Number(name)
    const known = numbers.get(name)
    if (known !== undefined) return known
    for (const [oldest] of numbers) {
      if (numbers.size < remembered) break
      numbers.delete(oldest)
    }
    numbers.set(name, highest + 1)
    return highest + 1
  }

  return {
    get latest() {
      return latest
    },
    read(name) {
      if (typeof name !== 'string' && typeof name !== 'number') return latest ?? 0
      latest = numberOf(String(name))
      highest = Math.max(highest, latest)
      return latest
    },
  }
}

/** The range of a sample's version: from the one seen before the request to the one in the answer. */
export function versionRange(before: number | undefined, answered: number): VersionRange {
  return { from: Math.min(before ?? answered, answered), to: answered }
}
