import { pick, type Random } from '../../base/math/random.ts'
import { type Candidate, meanScore } from './candidate.ts'

/** For every validation task the places of the candidates that nobody beats on it. */
export function frontOf(candidates: readonly Candidate[]): ReadonlySet<number>[] {
  const tasks = candidates[0]?.scores.length ?? 0
  return Array.from({ length: tasks }, (_, task) => {
    const scores = candidates.map(({ scores }) => scores[task]!)
    const best = Math.max(...scores.filter(score => !Number.isNaN(score)))
    return new Set(scores.flatMap((score, place) => (score === best ? [place] : [])))
  })
}

/**
 * The front without candidates that are needed nowhere: on each task that one of them leads, another leads too. The
 * worst on average go first (Agrawal et al. 2025, GEPA).
 */
export function withoutDominated(
  front: readonly ReadonlySet<number>[],
  candidates: readonly Candidate[],
): ReadonlySet<number>[] {
  const left = new Set(front.flatMap(leaders => [...leaders]))
  const worstFirst = [...left].sort((a, b) => meanScore(candidates[a]!) - meanScore(candidates[b]!))
  const isNeeded = (place: number): boolean =>
    front.some(
      leaders =>
        leaders.has(place) && [...leaders].every(each => each === place || !left.has(each)),
    )
  for (let dropped: number | undefined = -1; dropped !== undefined; ) {
    dropped = worstFirst.find(place => left.has(place) && !isNeeded(place))
    if (dropped !== undefined) left.delete(dropped)
  }
  return front.map(leaders => new Set([...leaders].filter(place => left.has(place))))
}

/** The next candidate to work on: the more tasks it leads, the likelier. */
export function pickParent(candidates: readonly Candidate[], random: Random): number {
  const front = withoutDominated(frontOf(candidates), candidates)
  const tickets = front.flatMap(leaders => [...leaders])
  return tickets.length === 0 ? 0 : pick(tickets, random)
}

/** The place of the best candidate on average; the first of several. */
export function bestOf(candidates: readonly Candidate[]): number {
  const means = candidates.map(meanScore)
  return means.indexOf(Math.max(...means))
}
