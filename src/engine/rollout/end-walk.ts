import { unlessStopped } from '../../base/core/call.ts'
import type { World } from '../../base/core/environment.ts'
import { across, describeCause, Failure } from '../../base/core/failure.ts'
import { type Json, trajectoryId } from '../../base/core/ids.ts'
import { isGradableOutcome, type Outcome } from '../../base/core/outcome.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import type { Place } from '../../base/core/tree.ts'
import type { Attempt, OnTime } from './attempt.ts'
import { sampledEnd, type Walk } from './walk.ts'

/** An ended attempt before its id and its share in the tree are known. */
export type Ending = Omit<Trajectory, 'id' | 'share'>

/** Ends the only walk of a tree. */
export async function endWalk(walk: Walk, outcome: Outcome): Promise<Trajectory> {
  const ending = await closeWalk(walk, outcome)
  const trajectory = {
    ...ending,
    id: trajectoryId(walk.tree.id, walk.tree.trajectories.length),
    share: 1,
  }
  walk.tree.end(trajectory)
  return trajectory
}

/** Closes a walk. Worlds report at every gradable end, before anybody disposes of them. */
export async function closeWalk(walk: Walk, outcome: Outcome): Promise<Ending> {
  const { attempt, world } = walk
  let report: Json | undefined
  let final = outcome
  if (isGradableOutcome(outcome) && world.report) {
    try {
      report = await across('environment', attempt, () => reportUnlessStopped(world, attempt))
    } catch (error) {
      final = outcomeOf(error, attempt.signal)
    }
  }
  const { seconds, cached, servers } = walk.used
  return {
    end: endOf(walk),
    outcome: final,
    turns: walk.turns,
    messages: walk.messages,
    ...storedViews(walk),
    calls: walk.calls,
    ...(report !== undefined && { report }),
    fidelity: { kind: fidelityOf(walk), forks: walk.forks },
    usage: { sampled: walk.used.sampled, prompt: walk.used.prompted },
    events: walk.events,
    volatile: { seconds, cached, servers: [...servers].sort() },
  }
}

/** The world's report; also if time is up and time is part of the task. */
async function reportUnlessStopped(world: World, attempt: Attempt): Promise<Json | undefined> {
  const reporting = world.report!()
  return await (attempt.signal.aborted ? reporting : unlessStopped(attempt, reporting))
}

/** The end of the walk, without an observation that did not fit the context: the policy never saw it. */
function endOf(walk: Walk): Place {
  return walk.tokens.length > walk.context.limits.context ? sampledEnd(walk) : walk.place
}

/** The views of steps follow from the conversation, and are not stored. */
function storedViews({ views }: Walk): Pick<Trajectory, 'views'> {
  const stored = views.filter(({ by }) => by !== 'step')
  return stored.length > 0 ? { views: stored } : {}
}

function fidelityOf(walk: Walk): Trajectory['fidelity']['kind'] {
  if (walk.isReencoded) return 're-encoded'
  return walk.forks.length > 0 ? 'forked' : 'exact'
}

/** What an error that ended a walk is, as data. */
export function outcomeOf(error: unknown, signal: AbortSignal): Outcome {
  if (signal.aborted) return stopOf(signal.reason)
  if (error instanceof Failure) {
    return { kind: 'failed', boundary: error.boundary, message: error.message }
  }
  throw error
}

/**
 * The reason with which an attempt is aborted when its time is up. A slow server is not the policy's fault, so the
 * attempt is not graded unless `onTime` says that time is part of the task.
 */
export class TimeIsUp extends Error {
  override name = 'TimeIsUp'
  readonly isGraded: boolean

  constructor(seconds: number, onTime: OnTime) {
    super(`${seconds} s`)
    this.isGraded = onTime === 'graded'
  }
}

function stopOf(reason: unknown): Outcome {
  if (reason instanceof TimeIsUp) {
    return reason.isGraded ? { kind: 'truncated', limit: 'time' } : { kind: 'aborted', by: 'time' }
  }
  return { kind: 'aborted', by: describeCause(reason) }
}
