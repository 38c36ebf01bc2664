import type { Credit } from '../src/base/core/credit.ts'
import type { TaskId, TreeId } from '../src/base/core/ids.ts'
import { trajectoryId } from '../src/base/core/ids.ts'
import type { Outcome } from '../src/base/core/outcome.ts'
import { plainSampling } from '../src/base/core/policy.ts'
import { given, sampled } from '../src/base/core/segment.ts'
import { plainTrajectory, type Trajectory, type Turn } from '../src/base/core/trajectory.ts'
import { type GrowingTree, type Place, plantTree, root, type Tree } from '../src/base/core/tree.ts'
import { random, seedOf } from '../src/base/math/random.ts'

/** Draws for building test data; the same seed gives the same draws. */
export function dice(seed: number) {
  const next = random(seedOf('test', seed))
  const below = (limit: number): number => Math.floor(next() * limit)
  return { next, below, chance: (share: number): boolean => next() < share }
}

/** A trajectory that ended at a place, with plain values for everything else. */
export function endAt(tree: Tree, end: Place, parts: Partial<Trajectory> = {}): Trajectory {
  return plainTrajectory({
    id: trajectoryId(tree.id, tree.trajectories.length),
    end,
    outcome: { kind: 'completed' },
    ...parts,
  })
}

/** An empty tree to grow in a test. */
export function emptyTree(name = 'g/0'): GrowingTree {
  return plantTree({
    id: name as TreeId,
    task: 'task' as TaskId,
    member: 0,
    seed: 1,
    sampling: plainSampling,
    tools: [],
    renderer: 'test',
  })
}

/**
 * A random tree: forks at and inside segments, rewrites with lineage, several endings. `rewrites` is the
 * chance that a turn begins a new path; at 1 every turn does, as in a run of steps. `widest` is the most
 * ways a branching has.
 */
export function randomTree(seed: number, { rewrites = 0.2, widest = 3 } = {}): Tree {
  const { below, chance, next } = dice(seed)
  const isBlind = chance(0.1)
  const tree = emptyTree(`g/${seed}`)
  const ids = (most: number): Int32Array =>
    Int32Array.from({ length: 1 + below(most) }, () => below(50_000))
  const sample = () => {
    const tokens = ids(6)
    return sampled({
      ids: tokens,
      logprobs: isBlind ? null : Float32Array.from(tokens, () => -next() * 5),
      version: { from: 1, to: 1 + below(2) },
      ...(chance(0.3) && { entropies: Float32Array.from(tokens, next) }),
    })
  }
  const outcomes: readonly Outcome[] = [
    { kind: 'completed' },
    { kind: 'truncated', limit: 'tokens' },
    { kind: 'failed', boundary: 'tool', message: 'broke' },
  ]
  const grow = (from: Place, share: number, depth: number, turns: readonly Turn[]): void => {
    const first = tree.append(from, sample())
    const turn: Turn = { from: first.node, end: first, finish: { kind: 'stop' }, messages: 0 }
    const end = chance(0.2) ? tree.append(first, sample()) : first
    const soFar = [...turns, { ...turn, end }]
    if (depth === 0 || chance(0.2)) {
      const outcome = outcomes[below(chance(0.3) ? 3 : 1)]!
      tree.end(endAt(tree, end, { share, outcome, turns: soFar }))
      return
    }
    const width = 1 + below(widest)
    for (let branch = 0; branch < width; branch++) {
      const from = step(tree, end, { chance, below, ids, rewrites })
      grow(from, share / width, depth - 1, soFar)
    }
  }
  grow(tree.append(root, given('prompt', ids(8))), 1, 1 + below(4), [])
  return tree
}

type Dice = Pick<ReturnType<typeof dice>, 'chance' | 'below'> & {
  readonly rewrites: number
  ids(most: number): Int32Array
}

/** What is given after a sample: a bridge, a fork in the middle of it, or a rewrite. */
function step(tree: GrowingTree, end: Place, { chance, below, ids, rewrites }: Dice): Place {
  if (chance(rewrites)) {
    const keep = chance(0.5) ? root : { node: end.node, offset: below(end.offset + 1) }
    const lineage = { kind: 'rewrites', of: end, by: 'test', reason: 'a test rewrote it' } as const
    return tree.append(keep, given('observed', ids(9)), lineage)
  }
  if (chance(0.2)) return { node: end.node, offset: 1 + below(end.offset) }
  return tree.append(end, given('observed', ids(5)))
}

/** A random credit for every gradable trajectory of a tree, some left out as if filtered. */
export function randomCredits(
  tree: Tree,
  seed: number,
  weigh: (t: Trajectory) => number,
): Credit[] {
  const { next, chance } = dice(seed + 1_000_000)
  return tree.trajectories
    .filter(({ outcome }) => outcome.kind !== 'failed' && !chance(0.15))
    .map(trajectory => ({
      trajectory: trajectory.id,
      advantage: next() * 4 - 2,
      weight: weigh(trajectory),
    }))
}

/** All tokens of a tree, counted once. */
export function countTokens(tree: Tree): number {
  return tree.nodes.reduce((sum, node) => sum + node.segment.ids.length, 0)
}
