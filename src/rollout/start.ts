import type { World } from '../core/environment.ts'
import { across } from '../core/failure.ts'
import { given } from '../core/segment.ts'
import { root } from '../core/tree.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import { condenseOpening } from './condense.ts'
import { withRecall } from './recall.ts'
import { emptyWalk, hear, seedFor, type Walk } from './walk.ts'

/** Opens the world of an attempt through the environment's lane. */
export function openWorld(context: RolloutContext, attempt: Attempt): Promise<World> {
  const { environment, lanes, clock } = context
  const { signal, task } = attempt
  const seed = seedFor(attempt, 'world')
  return across('environment', attempt, () =>
    lanes.environment.run({ signal }, () => environment.open(task, { signal, seed, lanes, clock })),
  )
}

/** Plants the tree of an attempt in an opened world; its opening is condensed where that is wanted. */
export async function startWalk(
  context: RolloutContext,
  attempt: Attempt,
  world: World,
): Promise<Walk> {
  const { renderer, condense } = context
  const condensing = condense?.condenser.open()
  const walk = emptyWalk(context, attempt, condensing ? withRecall(world, condensing) : world)
  const begun: Walk = condensing ? { ...walk, condensing } : walk
  hear(begun, world.opening)
  await condenseOpening(begun)
  const ids = await across('renderer', attempt, () =>
    renderer.render(begun.shown, begun.tree.tools),
  )
  begun.place = begun.tree.append(root, given('prompt', ids))
  begun.tokens.append(ids)
  return begun
}
