import { imagesIn } from '@espalier/text'
import { unlessStopped } from '../../base/core/call.ts'
import type { Condensing } from '../../base/core/condenser.ts'
import type { World } from '../../base/core/environment.ts'
import { across, acrossNow, Failure } from '../../base/core/failure.ts'
import { given } from '../../base/core/segment.ts'
import type { Lineage } from '../../base/core/tree.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import { condenseOpening } from './condensing/condense.ts'
import { takeSummaryEnd } from './condensing/state.ts'
import { admitOpening, imageKeeper } from './images/admit.ts'
import { placesIn } from './images/places.ts'
import { addFork, emptyWalk, endOpening, extend, seedFor, type Walk } from './walk.ts'
import { hearOpening } from './world/examples.ts'
import { checkSaid } from './world/said.ts'

/** Opens the world of an attempt through the environment's lane. */
export async function openWorld(context: RolloutContext, attempt: Attempt): Promise<World> {
  const turn = context.shared.yielding.whenDue()
  if (turn) await turn
  const { environment, lanes, clock } = context
  const { signal, task } = attempt
  const seed = seedFor(attempt, 'world')
  const keepImage = imageKeeper(context, attempt)
  const call = { signal, seed, lanes, clock, ...(keepImage && { keepImage }) }
  // A world that opens after its attempt was stopped must be disposed of here.
  const tooLate = (world: World): void =>
    void world[Symbol.asyncDispose]().then(undefined, () => {})
  return await across('environment', attempt, () =>
    lanes.environment.run({ signal }, () =>
      unlessStopped(attempt, environment.open(task, call), tooLate),
    ),
  )
}

/** Plants the tree of an attempt in an opened world; its opening is condensed if that is wanted. */
export async function startWalk(
  context: RolloutContext,
  attempt: Attempt,
  world: World,
): Promise<Walk> {
  const { renderer, condense } = context
  checkSaid(world.opening)
  const condensing = condense?.condenser.open()
  if (condensing) checkNames(world, condensing)
  const walk = emptyWalk(context, attempt, { world, ...(condensing && { condensing }) })
  const seen = imagesIn(world.opening).length > 0
  hearOpening(walk, seen ? await admitOpening(context, attempt, world.opening) : world.opening)
  await condenseOpening(walk)
  endOpening(walk)
  const segment = acrossNow('renderer', attempt, () => {
    const ids = renderer.render(walk.shown, walk.tree.tools)
    return given('prompt', ids, undefined, placesIn(renderer, ids, walk.shown))
  })
  extend(walk, segment, lineageOf(walk))
  return walk
}

/** If the policy itself condensed the opening, the first path rewrites the summary's path. */
function lineageOf(walk: Walk): Lineage {
  const summaryEnd = takeSummaryEnd(walk.condensing)
  if (!summaryEnd) return { kind: 'extends' }
  const reason = 'the policy condensed the opening'
  addFork(walk, { at: 0, reason })
  return { kind: 'rewrites', of: summaryEnd, by: 'condenser', reason }
}

function checkNames({ tools }: World, { recall }: Condensing): void {
  const name = recall?.definition.function.name
  if (!tools.some(tool => tool.function.name === name)) return
  const cause = new Error(
    `the world has a tool "${name}" already, which recalls what was condensed`,
  )
  throw new Failure('condenser', { cause })
}
