import { setMaxListeners } from 'node:events'
import type { World } from '../../base/core/environment.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import { startPatientTimer } from '../../base/core/process/absences.ts'
import type { Tree } from '../../base/core/tree.ts'
import { act } from './act.ts'
import type { Attempt, RolloutContext } from './attempt.ts'
import { endWalk, outcomeOf, TimeIsUp } from './end-walk.ts'
import { sampleTurn } from './sample-turn.ts'
import { openWorld, startWalk } from './start.ts'
import { emptyWalk, noteDisposal, type Walk } from './walk.ts'
import { disposeOf } from './world/dispose.ts'

/** Rolls one attempt turn by turn until the environment ends it or a limit does; a failure is data. */
export function rollChain(context: RolloutContext, attempt: Attempt): Promise<Tree> {
  return rollWalk(context, attempt, walkToEnd)
}

/** Opens a world, walks through it to its end, and disposes of it, whatever happens. */
export async function rollWalk(
  context: RolloutContext,
  attempt: Attempt,
  toEnd: (walk: Walk) => Promise<Outcome>,
): Promise<Tree> {
  const timed = withTime(attempt, context)
  let world: World | undefined
  let walk: Walk | undefined
  try {
    world = await openWorld(context, timed.attempt)
    walk = await startWalk(context, timed.attempt, world)
    await endWalk(walk, await toEnd(walk))
    return walk.tree
  } catch (error) {
    walk ??= emptyWalk(context, attempt)
    await endWalk(walk, outcomeOf(error, timed.attempt.signal))
    return walk.tree
  } finally {
    timed.clear()
    await dispose(world, walk)
  }
}

/** Samples and acts in turn until something ends the walk. */
export async function walkToEnd(walk: Walk): Promise<Outcome> {
  for (;;) {
    walk.attempt.signal.throwIfAborted()
    const sampled = await sampleTurn(walk)
    if (sampled.kind === 'end') return sampled.outcome
    const outcome = await act(walk, sampled.reply)
    if (outcome) return outcome
  }
}

/** An attempt whose signal also aborts when its time is up, and a function that stops the timer. */
export function withTime(
  attempt: Attempt,
  { limits: { seconds }, onTime = 'ungraded' }: Pick<RolloutContext, 'limits' | 'onTime'>,
): { readonly attempt: Attempt; clear(): void } {
  if (!Number.isFinite(seconds)) return { attempt, clear: () => {} }
  const timer = new AbortController()
  const handle = startPatientTimer(() => timer.abort(new TimeIsUp(seconds, onTime)), seconds * 1000)
  const signal = AbortSignal.any([attempt.signal, timer.signal])
  // All paths of a tree listen to this signal, which is not a leak.
  setMaxListeners(0, signal)
  return { attempt: { ...attempt, signal }, clear: handle.clear }
}

/** Disposing comes last; if it fails, the attempt still counts. */
export async function dispose(world: World | undefined, walk: Walk | undefined): Promise<void> {
  try {
    if (world) await disposeOf(world)
  } catch (error) {
    if (walk) noteDisposal(walk, error)
  }
}
