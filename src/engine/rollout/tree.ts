import type { Environment, World } from '../../base/core/environment.ts'
import { Failure } from '../../base/core/failure.ts'
import { trajectoryId } from '../../base/core/ids.ts'
import { isGradableOutcome } from '../../base/core/outcome.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import type { BranchPolicy, Grown } from './branch.ts'
import { dispose, withTime } from './chain.ts'
import { endWalk, outcomeOf } from './end-walk.ts'
import { scoreTrajectory } from './score.ts'
import { Search } from './search.ts'
import { openWorld, startWalk } from './start.ts'
import { emptyWalk, type Walk } from './walk.ts'

/** How a search tree grows. */
export interface TreeOptions {
  readonly branch: BranchPolicy
  /** Most endings of one tree. */
  readonly leaves: number
  /** The reward of ended paths, for branch policies that use it. @default the environment's */
  readonly reward?: Environment['reward']
}

/**
 * Rolls search trees: several continuations per turn from one exact prefix, in forked worlds. The
 * environment must be one whose worlds can be forked.
 */
export function rollTree(
  options: TreeOptions,
): (context: RolloutContext, attempt: Attempt) => Promise<Tree> {
  return async (context, attempt) => {
    checkNeeds(options.branch, context)
    const timed = withTime(attempt, context)
    try {
      const walk = await beginWalk(context, timed.attempt)
      return walk.world.fork ? await growTree(walk, options) : walk.tree
    } finally {
      timed.clear()
    }
  }
}

async function growTree(walk: Walk, options: TreeOptions): Promise<Tree> {
  const score = (path: Grown): Promise<number | undefined> =>
    scoreEnding(walk, path, options.reward)
  const search = new Search(walk, { ...options, score })
  try {
    await search.grow()
  } finally {
    await search[Symbol.asyncDispose]()
  }
  return search.finish()
}

/** Throws if the branch policy needs something that the policy cannot do, naming both. */
function checkNeeds({ name, needs }: BranchPolicy, { policy }: RolloutContext): void {
  const missing = needs?.(policy.capabilities)
  if (!missing) return
  throw new Error(
    `branch policy "${name}" needs ${missing}, which policy ${policy.name} does not give`,
  )
}

/** The first walk; if its world did not open, the attempt has ended already, in a tree without branches. */
async function beginWalk(context: RolloutContext, attempt: Attempt): Promise<Walk> {
  let world: World | undefined
  try {
    world = await openWorld(context, attempt)
    if (world.fork && world.forkAt) return await startWalk(context, attempt, world)
    const cause = new Error(`worlds of "${context.environment.name}" cannot be forked`)
    throw new Failure('environment', { cause })
  } catch (error) {
    const walk = emptyWalk(context, attempt)
    await endWalk(walk, outcomeOf(error, attempt.signal))
    await dispose(world, walk)
    return walk
  }
}

async function scoreEnding(
  walk: Walk,
  { ending }: Grown,
  reward: Environment['reward'] = walk.context.environment.reward,
): Promise<number | undefined> {
  const { outcome } = ending
  if (!isGradableOutcome(outcome)) return undefined
  const { context, attempt, tree } = walk
  const trajectory = { ...ending, outcome, id: trajectoryId(tree.id, 0), share: 1 }
  const scoring = { ...context, reward, signal: attempt.signal }
  // A failing reward is reported later, when the trajectory is finally scored.
  return await scoreTrajectory(trajectory, attempt.task, scoring).then(
    ({ total }) => total,
    () => undefined,
  )
}
