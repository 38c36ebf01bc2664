import { pick, type Random } from '../../base/math/random.ts'
import { type Candidate, digestOf, meanScore, type Parts } from './candidate.ts'
import { frontOf, withoutDominated } from './pareto.ts'

/** Two candidates that may be joined, and the one that both came from. */
interface Pair {
  readonly first: number
  readonly second: number
  readonly ancestor: number
}

/** A prompt that has of each part what changed since two candidates parted. */
export interface Merged extends Pair {
  readonly parts: Parts
}

/** Joins two candidates of the front that have an ancestor in common and are at least as good as it, if there are such. */
export function merge(
  candidates: readonly Candidate[],
  isKnown: (parts: Parts) => boolean,
  random: Random,
): Merged | undefined {
  const merged = pairsOf(candidates)
    .map(pair => ({ ...pair, parts: join(candidates, pair) }))
    .filter(({ parts }) => !isKnown(parts))
  return merged.length === 0 ? undefined : pick(merged, random)
}

function pairsOf(candidates: readonly Candidate[]): readonly Pair[] {
  const front = withoutDominated(frontOf(candidates), candidates)
  const leaders = [...new Set(front.flatMap(each => [...each]))].sort((a, b) => a - b)
  return leaders.flatMap((first, at) =>
    leaders.slice(at + 1).flatMap(second => {
      const ancestor = commonAncestor(candidates, first, second)
      return ancestor === undefined ? [] : [{ first, second, ancestor }]
    }),
  )
}

/** The best common ancestor that neither is better than both nor one of the two. */
function commonAncestor(
  candidates: readonly Candidate[],
  first: number,
  second: number,
): number | undefined {
  const ofFirst = ancestorsOf(candidates, first)
  const ofSecond = ancestorsOf(candidates, second)
  if (ofFirst.has(second) || ofSecond.has(first)) return undefined
  const score = (place: number): number => meanScore(candidates[place]!)
  const least = Math.min(score(first), score(second))
  return [...ofFirst]
    .filter(place => ofSecond.has(place) && score(place) <= least)
    .sort((a, b) => score(b) - score(a) || a - b)[0]
}

function ancestorsOf(candidates: readonly Candidate[], place: number): ReadonlySet<number> {
  const found = new Set<number>()
  const open = [...candidates[place]!.parents]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (!found.has(next)) open.push(...candidates[next]!.parents)
    found.add(next)
  }
  return found
}

/** Of each part the text that is not the ancestor's; if both changed it, that of the better one. */
function join(candidates: readonly Candidate[], { first, second, ancestor }: Pair): Parts {
  const [one, other, old] = [first, second, ancestor].map(place => candidates[place]!)
  const better = meanScore(other!) > meanScore(one!) ? other! : one!
  return new Map(
    [...old!.parts].map(([name, before]): [string, string] => {
      const mine = one!.parts.get(name)!
      const theirs = other!.parts.get(name)!
      if (mine === before) return [name, theirs]
      return [name, theirs === before ? mine : better.parts.get(name)!]
    }),
  )
}

/**
 * The validation tasks that a merged prompt is tried on first: as many that the one leads as the other, and as many
 * that they share.
 */
export function tasksToMergeOn(
  [one, other]: readonly [Candidate, Candidate],
  count: number,
  random: Random,
): readonly number[] {
  const kinds: number[][] = [[], [], []]
  one.scores.forEach((score, task) => {
    const against = other.scores[task]!
    if (Number.isNaN(score) || Number.isNaN(against)) return
    kinds[score > against ? 0 : score < against ? 1 : 2]!.push(task)
  })
  const chosen: number[] = []
  for (let turn = 0; chosen.length < count && kinds.some(kind => kind.length > 0); turn++) {
    const kind = kinds[turn % kinds.length]!
    if (kind.length > 0) chosen.push(...kind.splice(Math.floor(random() * kind.length), 1))
  }
  return chosen.sort((a, b) => a - b)
}

/** Whether one of these candidates has these parts. */
export function hasParts(candidates: readonly Candidate[], parts: Parts): boolean {
  const digest = digestOf(parts)
  return candidates.some(candidate => digestOf(candidate.parts) === digest)
}
