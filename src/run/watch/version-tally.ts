import { makeCounter } from './tallies.ts'
import type { TreeFigures } from './tree-figures.ts'

/** Which weights sampled the tokens of a run. */
export interface VersionReport {
  /** Sampled tokens by the version of the weights. */
  readonly tokens: Readonly<Record<string, number>>
  /** Tokens of trees that mix versions. */
  readonly mixed: number
  /** Tokens sampled by older weights than the newest of their step. */
  readonly stale: number
}

/** Adds up sampled tokens by version. Trajectories share tokens, so that trees are counted. */
export interface VersionTally {
  /** Adds what one tree sampled; gives its tokens. */
  add(versions: TreeFigures['versions'], step?: number): number
  report(): VersionReport
}

/** Opens a tally; groups without a step count as one step. */
export function makeVersionTally(): VersionTally {
  const tokens = makeCounter()
  const steps = new Map<number, Map<number, number>>()
  let mixed = 0
  return {
    add(versions, step = 0) {
      const own = new Map<number, number>()
      for (const [from, to, count] of versions) {
        tokens.add(from === to ? String(from) : `${from}-${to}`, count)
        own.set(from, (own.get(from) ?? 0) + count)
      }
      const sampled = [...own.values()].reduce((sum, count) => sum + count, 0)
      if (own.size > 1) mixed += sampled
      const all = steps.get(step) ?? new Map<number, number>()
      for (const [version, count] of own) all.set(version, (all.get(version) ?? 0) + count)
      steps.set(step, all)
      return sampled
    },
    report: () => ({
      tokens: tokens.record(),
      mixed,
      stale: [...steps.values()].reduce((sum, versions) => sum + staleIn(versions), 0),
    }),
  }
}

function staleIn(versions: ReadonlyMap<number, number>): number {
  const newest = [...versions.keys()].reduce((most, version) => Math.max(most, version), -Infinity)
  return [...versions].reduce((sum, [version, count]) => sum + (version < newest ? count : 0), 0)
}
