import type { BranchPolicy, Grown, GrownTree, Growth } from '../branch.ts'

/**
 * Grows one path at a time from the turn that promises most: the mean reward of the endings below
 * it, and more if few have been tried (an upper confidence bound). @default exploration 1
 */
export function bestFirstBranches({ exploration = 1 } = {}): BranchPolicy {
  return {
    name: 'best-first',
    async grow(grown) {
      const scores = await Promise.all(grown.paths.map(path => grown.score(path)))
      const places = valuesOf(grown, scores)
      const total = scores.filter(score => score !== undefined).length
      const ranked = places
        .map(place => ({
          place,
          promise: place.mean + exploration * Math.sqrt(Math.log(total + 1) / place.tries),
        }))
        .sort((a, b) => b.promise - a.promise)
      return ranked[0] ? [ranked[0].place.growth] : []
    },
  }
}

interface Valued {
  readonly growth: Growth
  readonly mean: number
  readonly tries: number
}

/** Turns that were not the last of their path, each with the rewards of the endings below it. */
function valuesOf(
  { tree, paths }: GrownTree,
  scores: readonly (number | undefined)[],
): readonly Valued[] {
  const below = new Map<number, { growth: Growth; rewards: number[] }>()
  paths.forEach((from: Grown, index) => {
    const score = scores[index]
    if (score === undefined) return
    from.ending.turns.forEach((turn, number) => {
      const place = tree.nodes[turn.from]!.parent.node
      const entry = below.get(place) ?? { growth: { from, turn: number }, rewards: [] }
      entry.rewards.push(score)
      below.set(place, entry)
    })
  })
  return [...below.values()].map(({ growth, rewards }) => ({
    growth,
    mean: rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
    tries: rewards.length,
  }))
}
